// Builds the chart options for counters read during a run: one panel per counter, measured spans shaded.
import type {
  EChartsOption,
  GridComponentOption,
  LineSeriesOption,
  XAXisComponentOption,
  YAXisComponentOption,
} from "echarts";

import type { Counters } from "@/api/schema";
import { DASH, formatValue } from "@/components/number";
import type { ChartTheme } from "../theme";
import { baseOption, buildElapsedAxis, buildValueAxis, type Drawing, seriesColour, tooltipOption } from "./drawing";

const PANEL = 74;
const GAP = 34;
const TOP = 26;
const BOTTOM = 44;
/** Up to so many readings of a counter are seen one by one. */
const MOST_DOTS = 60;

type Counter = Counters["series"][number];

/** `since`: what second 0 is. */
export function drawTelemetry(
  counters: Omit<Counters, "job_id" | "title"> & Partial<Counters>,
  theme: ChartTheme,
  since = "since the first run began",
): Drawing {
  const shown = counters.series;
  const height = TOP + shown.length * (PANEL + GAP) - GAP + BOTTOM;
  const option: EChartsOption = {
    ...baseOption(theme),
    axisPointer: { link: [{ xAxisIndex: "all" }] },
    tooltip: { ...tooltipOption(theme), trigger: "axis" },
    grid: shown.map((_, index): GridComponentOption => ({
      left: 64,
      right: 16,
      top: TOP + index * (PANEL + GAP),
      height: PANEL,
    })),
    xAxis: shown.map((_, index) => buildTimeAxis(index, index === shown.length - 1, findEnd(shown), since, theme)),
    yAxis: shown.map((one, index): YAXisComponentOption => ({
      ...buildValueAxis(theme, knownValues(one), counterName(one), one.unit, false, true),
      type: "value",
      gridIndex: index,
      splitNumber: 2,
    })),
    series: shown.map((one, index) => drawCounter(one, index, counters, theme)),
  };
  return { option, table: buildTable(shown), height: Math.max(height, 120) };
}

function findEnd(shown: readonly Counter[]): number {
  return Math.max(0, ...shown.flatMap((one) => one.at_s));
}

function buildTimeAxis(
  index: number,
  isLast: boolean,
  end: number,
  since: string,
  theme: ChartTheme,
): XAXisComponentOption {
  const axis = buildElapsedAxis(theme, isLast ? since : "", end);
  return { ...axis, gridIndex: index, axisLabel: { ...axis.axisLabel, show: isLast } };
}

function drawCounter(
  one: Counter,
  index: number,
  counters: Pick<Counters, "measured">,
  theme: ChartTheme,
): LineSeriesOption {
  return {
    name: counterName(one),
    type: "line",
    xAxisIndex: index,
    yAxisIndex: index,
    // A reading between two gaps is a line to nowhere: few readings are seen one by one.
    symbol: knownValues(one).length > MOST_DOTS ? "none" : "circle",
    symbolSize: 4,
    itemStyle: { color: seriesColour(theme, 0) },
    connectNulls: false,
    lineStyle: { color: seriesColour(theme, 0), width: 1.25 },
    tooltip: { valueFormatter: (value) => (typeof value === "number" ? formatValue(value, one.unit) : DASH) },
    data: one.at_s.map((at, place) => [at, one.value[place] ?? null]),
    markArea: {
      silent: true,
      itemStyle: { color: theme.muted, opacity: 0.1 },
      data: counters.measured.map((span) => [{ xAxis: span.begin_s }, { xAxis: span.end_s }]),
    },
  };
}

function buildTable(shown: readonly Counter[]): Drawing["table"] {
  return {
    columns: ["counter", "readings", "least", "median", "most"],
    rows: shown.map((one) => {
      const sorted = knownValues(one).sort((a, b) => a - b);
      const formatQuantile = (share: number) => {
        const value = sorted[Math.round(share * (sorted.length - 1))];
        return value === undefined ? DASH : formatValue(value, one.unit);
      };
      return [counterName(one), String(sorted.length), formatQuantile(0), formatQuantile(0.5), formatQuantile(1)];
    }),
  };
}

function knownValues(one: Counter): number[] {
  return one.value.filter((value): value is number => value !== null);
}

function counterName(one: Counter): string {
  return `${one.probe} ${one.counter}`.trim();
}
