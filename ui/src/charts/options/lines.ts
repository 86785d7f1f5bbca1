// Builds the chart options for numbers reported step by step: one panel per metric, one line per run and set of labels.
import type {
  EChartsOption,
  GridComponentOption,
  LineSeriesOption,
  XAXisComponentOption,
  YAXisComponentOption,
} from "echarts";

import type { StepLines } from "@/api/schema";
import { DASH, formatValue } from "@/components/number";
import type { ChartTheme } from "../theme";
import {
  baseOption,
  buildBottomAxis,
  buildValueAxis,
  type Drawing,
  legendOption,
  lineStyle,
  seriesColour,
  tooltipOption,
} from "./drawing";

const PANEL = 130;
const GAP = 44;
const TOP = 44;
const BOTTOM = 48;
/** Beyond so many metrics a chart is read by nobody; all are in the table. */
const MOST_PANELS = 6;

type Line = StepLines["lines"][number];

export function drawLines({ lines }: StepLines, theme: ChartTheme): Drawing {
  const all = [...new Set(lines.map((one) => one.metric))];
  const metrics = all.slice(0, MOST_PANELS);
  const names = [...new Set(lines.map(lineName))];
  const shown = lines.filter((one) => metrics.includes(one.metric));
  const option: EChartsOption = {
    ...baseOption(theme),
    tooltip: { ...tooltipOption(theme), trigger: "item" },
    ...(names.length > 1 ? { legend: legendOption(theme, names) } : {}),
    grid: metrics.map((_, index): GridComponentOption => ({
      left: 64,
      right: 16,
      top: TOP + index * (PANEL + GAP),
      height: PANEL,
    })),
    xAxis: metrics.map((_, index) => buildStepAxis(index, index === metrics.length - 1, theme)),
    yAxis: metrics.map((metric, index) => buildMetricAxis(metric, index, lines, theme)),
    series: shown.map((one) => drawLine(one, metrics.indexOf(one.metric), names.indexOf(lineName(one)), theme)),
  };
  const height = TOP + metrics.length * (PANEL + GAP) - GAP + BOTTOM;
  const isCut = metrics.length < all.length;
  const note = isCut ? `The first ${metrics.length} of ${all.length} metrics are drawn; the table has all.` : "";
  return { option, table: buildTable(lines), height, ...(note && { note }) };
}

/** What tells a line from others of its metric; runs are drawn alike. */
function lineName({ labels, rank }: Line): string {
  const named = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return [...named, ...(rank === null ? [] : [`rank ${rank}`])].join(", ") || "unlabelled";
}

function buildStepAxis(index: number, isLast: boolean, theme: ChartTheme): XAXisComponentOption {
  const axis = buildBottomAxis(theme, isLast ? "step" : "");
  return { ...axis, gridIndex: index, min: "dataMin", max: "dataMax" };
}

function buildMetricAxis(
  metric: string,
  index: number,
  lines: readonly Line[],
  theme: ChartTheme,
): YAXisComponentOption {
  const own = lines.filter((one) => one.metric === metric);
  const values = own.flatMap((one) => one.values).filter((value) => Number.isFinite(value));
  return { ...buildValueAxis(theme, values, metric, own[0]?.unit ?? ""), gridIndex: index, splitNumber: 3 };
}

function drawLine(one: Line, panel: number, colour: number, theme: ChartTheme): LineSeriesOption {
  return {
    name: lineName(one),
    type: "line",
    xAxisIndex: panel,
    yAxisIndex: panel,
    symbol: one.steps.length > 60 ? "none" : "circle",
    symbolSize: 4,
    lineStyle: { ...lineStyle(theme, colour), width: 1.25, opacity: 0.75 },
    itemStyle: { color: seriesColour(theme, colour) },
    tooltip: { valueFormatter: (value) => formatCell(Array.isArray(value) ? value[1] : value, one.unit) },
    data: one.steps.map((step, place) => [step, one.values[place] ?? null]),
  };
}

function buildTable(lines: readonly Line[]): Drawing["table"] {
  return {
    columns: ["metric", "of", "run", "steps", "first", "last", "least", "most"],
    rows: lines.map((one) => [
      one.metric,
      lineName(one),
      String(one.repetition),
      String(one.total),
      formatCell(one.values[0], one.unit),
      formatCell(one.values.at(-1), one.unit),
      formatCell(Math.min(...one.values), one.unit),
      formatCell(Math.max(...one.values), one.unit),
    ]),
  };
}

function formatCell(value: unknown, unit: string): string {
  return typeof value === "number" && Number.isFinite(value) ? formatValue(value, unit) : DASH;
}
