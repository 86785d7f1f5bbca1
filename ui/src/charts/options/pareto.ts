// Builds the chart options for a Pareto front: the metric against cost or power, with intervals in both.
import type { EChartsOption, LineSeriesOption, ScatterSeriesOption, SeriesOption } from "echarts";

import type { MatrixReport, ParetoPoint } from "@/api/schema";
import { formatEstimate } from "@/components/number";
import type { ChartTheme } from "../theme";
import {
  dotStyle,
  baseOption,
  buildValueAxis,
  type Drawing,
  legendOption,
  nameLabel,
  type NameLayout,
  nameSide,
  spreadNames,
} from "./drawing";
import { drawIntervalBars, placeInterval } from "./intervals";

const FRONT = "on the front";
const BEHIND = "behind it";

export function drawPareto(report: MatrixReport, title: string, theme: ChartTheme): Drawing {
  const points = report.pareto;
  const against = againstName(points);
  const layout = spreadNames();
  const option: EChartsOption = {
    ...baseOption(theme),
    legend: legendOption(theme, [FRONT, BEHIND]),
    grid: { left: 72, right: 32, top: 48, bottom: 48 },
    xAxis: {
      ...buildValueAxis(
        theme,
        points.map((one) => one.against.value),
        against,
        points[0]?.against.unit ?? "1",
      ),
      nameLocation: "middle",
      nameGap: 28,
    },
    yAxis: buildValueAxis(
      theme,
      points.map((one) => one.value.value),
      title,
      report.unit,
    ),
    series: [
      ...drawGroup(points, true, theme, layout),
      ...drawGroup(points, false, theme, layout),
      joinFront(points, theme),
    ],
  };
  return { option, table: buildTable(report, title, against), height: 340 };
}

function drawGroup(
  points: readonly ParetoPoint[],
  isFront: boolean,
  theme: ChartTheme,
  layout: NameLayout,
): SeriesOption[] {
  const mine = points.filter((one) => one.is_front === isFront);
  const color = isFront ? theme.good : theme.muted;
  const dots: ScatterSeriesOption = {
    name: isFront ? FRONT : BEHIND,
    type: "scatter",
    symbol: "circle",
    symbolSize: 10,
    itemStyle: dotStyle(theme, color, !isFront),
    ...nameLabel(theme, layout),
    data: mine.map((one) => ({
      name: pointName(one),
      value: [one.against.value, one.value.value],
      label: nameSide(
        one.against.value,
        points.map(({ against }) => against.value),
      ),
    })),
    tooltip: { formatter: (one) => formatPoint(mine[(one as { dataIndex: number }).dataIndex]) },
  };
  return [
    drawIntervalBars(placeIntervals(mine, "value", "against"), { color, along: "y" }),
    drawIntervalBars(placeIntervals(mine, "against", "value"), { color, along: "x" }),
    dots,
  ];
}

type Side = "value" | "against";

function placeIntervals(points: readonly ParetoPoint[], of: Side, at: Side) {
  return points.flatMap((one) => placeInterval(one[at].value, one[of]));
}

function joinFront(points: readonly ParetoPoint[], theme: ChartTheme): LineSeriesOption {
  const front = points.filter((one) => one.is_front).sort((a, b) => a.against.value - b.against.value);
  return {
    type: "line",
    symbol: "none",
    silent: true,
    lineStyle: { color: theme.good, width: 1, opacity: 0.7 },
    tooltip: { show: false },
    data: front.map((one) => [one.against.value, one.value.value]),
  };
}

function againstName(points: readonly ParetoPoint[]): string {
  const unit = points[0]?.against.unit;
  return unit === "W" ? "power" : unit === "J" ? "energy per item" : "cost per million";
}

function pointName(point: ParetoPoint): string {
  return `${point.row} × ${point.column}`;
}

function formatPoint(point: ParetoPoint | undefined): string {
  return point === undefined
    ? ""
    : `${pointName(point)}\n${formatEstimate(point.value)}\n${formatEstimate(point.against)}`;
}

function buildTable(report: MatrixReport, title: string, against: string): Drawing["table"] {
  return {
    columns: ["configuration", title, against, "place"],
    rows: report.pareto.map((one) => [
      pointName(one),
      formatEstimate(one.value),
      formatEstimate(one.against),
      one.is_front ? FRONT : BEHIND,
    ]),
  };
}
