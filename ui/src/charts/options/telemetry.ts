// Counters that were read beside a run in, one chart with a panel for each out; the measured spans are shaded.
import type { EChartsOption, GridComponentOption, LineSeriesOption, XAXisComponentOption, YAXisComponentOption } from "echarts";

import type { Counters } from "@/api/schema";
import { DASH, plain } from "@/components/number";
import type { ChartTheme } from "../theme";
import { base, bottomAxis, colour, tooltip, valueAxis, type Drawing } from "./drawing";

const PANEL = 74;
const GAP = 34;
const TOP = 26;
const BOTTOM = 44;

type Counter = Counters["series"][number];

export function telemetryDrawing(counters: Counters, theme: ChartTheme): Drawing {
  const shown = counters.series;
  const height = TOP + shown.length * (PANEL + GAP) - GAP + BOTTOM;
  const option: EChartsOption = {
    ...base(theme),
    axisPointer: { link: [{ xAxisIndex: "all" }] },
    tooltip: { ...tooltip(theme), trigger: "axis" },
    grid: shown.map((_, index): GridComponentOption => ({
      left: 64, right: 16, top: TOP + index * (PANEL + GAP), height: PANEL,
    })),
    xAxis: shown.map((_, index) => timeAxis(index, index === shown.length - 1, theme)),
    yAxis: shown.map((one, index): YAXisComponentOption => ({
      ...valueAxis(theme, numbersOf(one), nameOf(one), one.unit),
      type: "value",
      gridIndex: index,
      splitNumber: 2,
    })),
    series: shown.map((one, index) => lineOf(one, index, counters, theme)),
  };
  return { option, table: tableOf(shown), height: Math.max(height, 120) };
}

function timeAxis(index: number, isLast: boolean, theme: ChartTheme): XAXisComponentOption {
  const axis = bottomAxis(theme, isLast ? "s since the first run began" : "");
  return { ...axis, gridIndex: index, axisLabel: { ...axis.axisLabel, show: isLast } };
}

function lineOf(one: Counter, index: number, counters: Counters, theme: ChartTheme): LineSeriesOption {
  return {
    name: nameOf(one),
    type: "line",
    xAxisIndex: index,
    yAxisIndex: index,
    symbol: "none",
    connectNulls: false,
    lineStyle: { color: colour(theme, 0), width: 1.25 },
    tooltip: { valueFormatter: (value) => (typeof value === "number" ? plain(value, one.unit) : DASH) },
    data: one.at_s.map((at, place) => [at, one.value[place] ?? null]),
    markArea: {
      silent: true,
      itemStyle: { color: theme.muted, opacity: 0.1 },
      data: counters.measured.map((span) => [{ xAxis: span.begin_s }, { xAxis: span.end_s }]),
    },
  };
}

function tableOf(shown: readonly Counter[]): Drawing["table"] {
  return {
    columns: ["counter", "readings", "least", "median", "most"],
    rows: shown.map((one) => {
      const sorted = numbersOf(one).sort((a, b) => a - b);
      const at = (share: number) => {
        const value = sorted[Math.round(share * (sorted.length - 1))];
        return value === undefined ? DASH : plain(value, one.unit);
      };
      return [nameOf(one), String(sorted.length), at(0), at(0.5), at(1)];
    }),
  };
}

function numbersOf(one: Counter): number[] {
  return one.value.filter((value): value is number => value !== null);
}

function nameOf(one: Counter): string {
  return `${one.probe} ${one.counter}`;
}
