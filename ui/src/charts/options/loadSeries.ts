// Builds the chart options for one run of a load, second by second: replies and errors, requests in flight, latencies.
import type { EChartsOption, LineSeriesOption } from "echarts";

import type { LoadSeries } from "@/api/schema";
import { DASH, formatValue } from "@/components/number";
import type { ChartTheme } from "../theme";
import {
  baseOption,
  buildElapsedAxis,
  buildValueAxis,
  type Drawing,
  legendOption,
  lineStyle,
  seriesColour,
  tooltipOption,
} from "./drawing";

export type LoadRun = LoadSeries["runs"][number];
type Numbers = readonly (number | null)[];

const LEFT = 64;
const RIGHT = 20;
// Where each panel begins, and how high it is.
const PANELS = [
  { top: 48, height: 110 },
  { top: 202, height: 80 },
  { top: 326, height: 110 },
] as const;
const HEIGHT = 490;

interface Line {
  name: string;
  panel: 0 | 1 | 2;
  values: Numbers;
  unit: string;
}

export function drawLoadRun(run: LoadRun, theme: ChartTheme): Drawing {
  const lines = listLines(run);
  const title = ["a second", "in flight", "latency"];
  const option: EChartsOption = {
    ...baseOption(theme),
    axisPointer: { link: [{ xAxisIndex: "all" }] },
    tooltip: { ...tooltipOption(theme), trigger: "axis" },
    legend: legendOption(
      theme,
      lines.map((one) => one.name),
    ),
    grid: PANELS.map((panel) => ({ left: LEFT, right: RIGHT, ...panel })),
    xAxis: PANELS.map((_, panel) => ({
      ...buildElapsedAxis(theme, panel === PANELS.length - 1 ? "since the run began" : "", run.at_s.at(-1) ?? 1),
      gridIndex: panel,
      min: 0,
    })),
    yAxis: PANELS.map((_, panel) => {
      const own = lines.filter((one) => one.panel === panel);
      const known = own.flatMap((one) => one.values.filter((value): value is number => value !== null));
      return { ...buildValueAxis(theme, known, title[panel] ?? "", own[0]?.unit ?? "1", true), gridIndex: panel };
    }),
    series: lines.map((line, index) => drawLine(line, index, run.at_s, theme)),
  };
  return { option, table: buildTable(run), height: HEIGHT };
}

function listLines(run: LoadRun): Line[] {
  return [
    { name: "replies a second", panel: 0, values: run.rate_per_s, unit: "1" },
    { name: "errors a second", panel: 0, values: run.failed_per_s, unit: "1" },
    { name: "in flight", panel: 1, values: run.in_flight, unit: "1" },
    { name: "p50", panel: 2, values: run.p50_ms, unit: "ms" },
    { name: "p99", panel: 2, values: run.p99_ms, unit: "ms" },
  ];
}

function drawLine(line: Line, index: number, at: readonly number[], theme: ChartTheme): LineSeriesOption {
  const colour = line.name.startsWith("errors") ? theme.bad : seriesColour(theme, index);
  return {
    name: line.name,
    type: "line",
    xAxisIndex: line.panel,
    yAxisIndex: line.panel,
    // A run of a second or two has no line to draw.
    symbol: at.length < 3 ? "circle" : "none",
    connectNulls: false,
    lineStyle: { ...lineStyle(theme, index), color: colour, width: 1.5 },
    itemStyle: { color: colour },
    tooltip: { valueFormatter: (value) => (typeof value === "number" ? formatValue(value, line.unit) : DASH) },
    data: at.map((second, place) => [second, line.values[place] ?? null]),
  };
}

function buildTable(run: LoadRun): Drawing["table"] {
  const lines = listLines(run);
  return {
    columns: ["second", ...lines.map((one) => one.name)],
    rows: run.at_s.map((second, place) => [
      formatValue(second),
      ...lines.map(({ values, unit }) => {
        const value = values[place] ?? null;
        return value === null ? DASH : formatValue(value, unit);
      }),
    ]),
  };
}
