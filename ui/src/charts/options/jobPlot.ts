// Builds the chart options for several jobs together: numbers along one setting with bounds, or one against another.
import type { EChartsOption, SeriesOption } from "echarts";

import type { JobPlot } from "@/api/schema";
import { DASH, formatValue } from "@/components/number";
import type { ChartTheme } from "../theme";
import {
  dotStyle,
  baseOption,
  buildBottomAxis,
  buildValueAxis,
  type Drawing,
  legendOption,
  nameLabel,
  type NameLayout,
  nameSide,
  seriesColour,
  spreadNames,
} from "./drawing";
import { drawIntervalBars, type Interval } from "./intervals";

type Line = JobPlot["lines"][number];
type Point = Line["points"][number];

export function drawJobPlot(plot: JobPlot, theme: ChartTheme): Drawing {
  const points = plot.lines.flatMap((line) => line.points);
  const measured = plot.lines.filter((line) => line.role === "line" || line.role === "points");
  const xs = [...new Set(points.map((one) => one.x))].sort((a, b) => a - b);
  const ys = points.map((one) => one.y);
  const isAlongSetting = plot.lines[0]?.role === "line";
  const bottom = buildBottomAxis(theme, plot.x_title, Math.max(...xs));
  const type = buildValueAxis(theme, xs, "", "1").type;
  const layout = spreadNames();
  const option: EChartsOption = {
    ...baseOption(theme),
    legend: legendOption(
      theme,
      plot.lines.map((line) => line.name),
    ),
    grid: { left: 72, right: 28, top: 60, bottom: 48 },
    xAxis: {
      ...bottom,
      type,
      scale: true,
      // Along a setting it is marked where something was measured, and nowhere else.
      ...(isAlongSetting
        ? { axisLabel: { ...bottom.axisLabel, customValues: xs }, min: xs[0] ?? 0, max: xs.at(-1) ?? 1 }
        : { boundaryGap: ["8%", "8%"] }),
    },
    yAxis: buildValueAxis(theme, ys, plot.y_title, "1", spread(ys) <= WIDE),
    series: plot.lines.flatMap((line) => drawLine(line, findTint(line, measured), theme, layout)),
  };
  return { option, table: buildTable(plot), height: 320 };
}

const WIDE = 30;

function spread(values: readonly number[]): number {
  const least = Math.min(...values);
  return least > 0 ? Math.max(...values) / least : 1;
}

/** A bound has the colour of the line whose name it ends with. */
function findTint(line: Line, measured: readonly Line[]): number {
  const own = measured.findIndex((one) => one === line || line.name.endsWith(`, ${one.name}`));
  return line.role === "front" ? 2 : Math.max(own, 0);
}

function drawLine(line: Line, tint: number, theme: ChartTheme, layout: NameLayout): SeriesOption[] {
  const color = seriesColour(theme, tint);
  const data = line.points.map((one) => ({
    name: one.label,
    value: [one.x, one.y],
    symbol: "circle",
    itemStyle: dotStyle(theme, color, one.is_void),
  }));
  const tooltip = {
    formatter: (one: unknown) => formatPoint(line, line.points[(one as { dataIndex: number }).dataIndex]),
  };
  if (line.role === "points") {
    return [
      ...drawIntervals(line.points, color),
      {
        name: line.name,
        type: "scatter",
        symbolSize: 9,
        itemStyle: { color },
        ...nameLabel(theme, layout),
        tooltip,
        data: data.map((one) => ({
          ...one,
          label: nameSide(
            one.value[0] ?? 0,
            line.points.map(({ x }) => x),
          ),
        })),
      },
    ];
  }
  const isMeasured = line.role === "line";
  return [
    ...drawIntervals(line.points, color),
    {
      name: line.name,
      type: "line",
      ...(isMeasured ? { symbolSize: 7 } : { symbol: "none" }),
      lineStyle: { color, width: isMeasured ? 1.5 : 1.2, type: line.role === "bound" ? "dashed" : "solid" },
      itemStyle: { color },
      tooltip,
      data,
    },
  ];
}

function drawIntervals(points: readonly Point[], color: string): SeriesOption[] {
  const along = (axis: "x" | "y"): Interval[] =>
    points.flatMap((one) => {
      const [low, high, at] = axis === "y" ? [one.y_low, one.y_high, one.x] : [one.x_low, one.x_high, one.y];
      return isNumber(low) && isNumber(high) ? [{ at, low, high }] : [];
    });
  return (["y", "x"] as const).flatMap((axis) => {
    const intervals = along(axis);
    return intervals.length === 0 ? [] : [drawIntervalBars(intervals, { color, along: axis })];
  });
}

function formatPoint(line: Line, point: Point | undefined): string {
  if (point === undefined) return line.name;
  return [point.label || line.name, formatEnds(point.y, point.y_low, point.y_high), point.is_void ? "void" : ""]
    .filter(Boolean)
    .join("\n");
}

type End = number | null | undefined;

function isNumber(value: End): value is number {
  return typeof value === "number";
}

function formatEnds(value: number, low: End, high: End): string {
  const ends = isNumber(low) && isNumber(high) ? ` [${formatValue(low, "1")}, ${formatValue(high, "1")}]` : "";
  return `${formatValue(value, "1")}${ends}`;
}

function buildTable(plot: JobPlot): Drawing["table"] {
  return {
    columns: ["of", plot.x_title, plot.y_title, "job"],
    rows: plot.lines.flatMap((line) =>
      line.points.map((one) => [
        line.name,
        formatEnds(one.x, one.x_low, one.x_high),
        formatEnds(one.y, one.y_low, one.y_high),
        (one.is_void ? `${one.label} (void)` : one.label) || DASH,
      ]),
    ),
  };
}
