// Builds the chart options for samples over time: the median of each bucket in a band from its minimum to its maximum.
import type { EChartsOption, LineSeriesOption } from "echarts";

import type { Timeline } from "@/api/schema";
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
import { drawBand } from "./intervals";

/** Beyond so many runs, lines lie on top of each other: the first ones are drawn, and all are in the table. */
const MOST_RUNS = 6;

/** Up to so many samples of a run are seen one by one. */
const MOST_DOTS = 60;

type Run = Timeline["runs"][number];

export function drawTimeline(timeline: Timeline, title: string, theme: ChartTheme): Drawing {
  const runs = timeline.runs.slice(0, MOST_RUNS);
  const values = runs.flatMap((run) => run.buckets.flatMap((one) => [one.low, one.high])).filter(isNumber);
  const option: EChartsOption = {
    ...baseOption(theme),
    tooltip: { ...tooltipOption(theme), trigger: "axis", valueFormatter: (value) => formatCell(value, timeline.unit) },
    legend: legendOption(theme, runs.map(runName)),
    grid: { left: 64, right: 16, top: 44, bottom: 44 },
    xAxis: { ...buildElapsedAxis(theme, "since the run began", findEnd(runs)), min: 0 },
    yAxis: buildValueAxis(theme, values, title, timeline.unit),
    series: runs.flatMap((run, index) => buildSeries(run, index, theme)),
  };
  const omitted = timeline.runs.length - runs.length;
  const note =
    omitted > 0 ? `The first ${runs.length} of ${timeline.runs.length} runs are drawn; the table has all.` : "";
  return { option, table: buildTable(timeline), height: 280, ...(note && { note }) };
}

function findEnd(runs: readonly Run[]): number {
  return Math.max(0, ...runs.flatMap((run) => run.buckets.map((one) => one.at_s)));
}

function buildSeries(run: Run, index: number, theme: ChartTheme): LineSeriesOption[] {
  // Where samples are rare most buckets are empty: the line goes from one that has some to the next.
  const filled = run.buckets.filter((one) => one.count > 0);
  const places = filled.map((one) => ({ at: one.at_s, low: one.low ?? null, high: one.high ?? null }));
  const median: LineSeriesOption = {
    name: runName(run),
    type: "line",
    symbol: filled.length > MOST_DOTS ? "none" : "circle",
    symbolSize: 4,
    // Above the bands of all runs, also of those that are drawn later.
    z: 3,
    lineStyle: { ...lineStyle(theme, index), width: 1.5 },
    itemStyle: { color: seriesColour(theme, index) },
    data: filled.map((one) => [one.at_s, one.median ?? null]),
    ...drawFailures(run, theme),
  };
  return [...drawBand(places, seriesColour(theme, index)), median];
}

function drawFailures(run: Run, theme: ChartTheme): Partial<LineSeriesOption> {
  const failed = run.buckets.filter((one) => one.failed > 0 && isNumber(one.high));
  if (failed.length === 0) return {};
  return {
    markPoint: {
      symbol: "triangle",
      symbolSize: 8,
      itemStyle: { color: theme.bad },
      label: { show: false },
      data: failed.map((one) => ({ name: "failed", coord: [one.at_s, one.high ?? 0], value: one.failed })),
    },
  };
}

function buildTable(timeline: Timeline): Drawing["table"] {
  return {
    columns: ["run", "used", "samples", "failed", "least", "most"],
    rows: timeline.runs.map((run) => [
      String(run.repetition),
      run.is_used ? "yes" : run.excluded || "no",
      String(sum(run.buckets.map((one) => one.count))),
      String(sum(run.buckets.map((one) => one.failed))),
      formatCell(Math.min(...run.buckets.map((one) => one.low).filter(isNumber)), timeline.unit),
      formatCell(Math.max(...run.buckets.map((one) => one.high).filter(isNumber)), timeline.unit),
    ]),
  };
}

function runName(run: Run): string {
  return run.is_used ? `run ${String(run.repetition)}` : `run ${String(run.repetition)} (not used)`;
}

function formatCell(value: unknown, unit: string): string {
  return isNumber(value) && Number.isFinite(value) ? formatValue(value, unit) : DASH;
}

function isNumber(value: unknown): value is number {
  return typeof value === "number";
}

function sum(values: readonly number[]): number {
  return values.reduce((total, one) => total + one, 0);
}
