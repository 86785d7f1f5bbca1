// Builds the chart options for the canary and the noise of a device: one point per result, in their order.
import type { EChartsOption, LineSeriesOption } from "echarts";

import type { DeviceHistory } from "@/api/schema";
import { DASH, formatValue } from "@/components/number";
import { formatDay, formatInstant } from "@/components/time";
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

type Result = DeviceHistory["results"][number];

/** The canary's pieces of work, as people call what they time. */
const CANARY_TITLES: Record<string, string> = {
  compute_ms: "processor",
  memory_ms: "memory",
  gpu_compute_ms: "GPU",
  gpu_memory_ms: "GPU's memory",
};
const NOISE = "noise between runs";
const PANELS = [
  { top: 44, height: 130 },
  { top: 222, height: 90 },
] as const;
const HEIGHT = 370;

interface Line {
  name: string;
  panel: 0 | 1;
  values: (number | null)[];
}

export function drawSteadiness(results: readonly Result[], theme: ChartTheme): Drawing {
  const lines = listLines(results);
  const titles = ["canary against its median", "noise"];
  const option: EChartsOption = {
    ...baseOption(theme),
    axisPointer: { link: [{ xAxisIndex: "all" }] },
    tooltip: { ...tooltipOption(theme), trigger: "axis" },
    legend: legendOption(
      theme,
      lines.map((one) => one.name),
    ),
    grid: PANELS.map((panel) => ({ left: 64, right: 20, ...panel })),
    xAxis: PANELS.map((_, panel) => ({ ...buildOrderAxis(results, panel === 1, theme), gridIndex: panel })),
    yAxis: PANELS.map((_, panel) => {
      const known = lines.filter((one) => one.panel === panel).flatMap((one) => one.values.filter((v) => v !== null));
      return { ...buildValueAxis(theme, known, titles[panel] ?? "", "%", panel === 1), gridIndex: panel };
    }),
    series: lines.map((line, index) => drawLine(line, index, results, theme)),
  };
  return { option, table: buildTable(results), height: HEIGHT };
}

/** Canaries of different work have different durations: each is drawn against its own median. */
function listLines(results: readonly Result[]): Line[] {
  const names = [...new Set(results.flatMap((one) => Object.keys(one.canary)))];
  const canaries = names.map((name): Line => {
    const values = results.map((one) => one.canary[name] ?? null);
    const middle = medianOf(values.filter((value) => value !== null));
    const shares = values.map((value) => (value === null || !middle ? null : (100 * value) / middle));
    return { name: CANARY_TITLES[name] ?? name, panel: 0, values: shares };
  });
  const noise = results.map((one) => (one.noise == null ? null : 100 * one.noise));
  return [...canaries, { name: NOISE, panel: 1, values: noise }];
}

function medianOf(values: readonly number[]): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[half] : ((sorted[half - 1] ?? 0) + (sorted[half] ?? 0)) / 2;
}

function buildOrderAxis(results: readonly Result[], isLast: boolean, theme: ChartTheme) {
  const axis = buildBottomAxis(theme, isLast ? "results, the newest at the right" : "");
  const dayOf = (place: number): string => {
    const at = results[place - 1]?.ended_at;
    return at ? formatDay(at) : "";
  };
  return {
    ...axis,
    min: 0.5,
    max: results.length + 0.5,
    minInterval: 1,
    axisLabel: {
      ...axis.axisLabel,
      show: isLast,
      formatter: (place: number) => (Number.isInteger(place) ? dayOf(place) : ""),
    },
  };
}

function drawLine(line: Line, index: number, results: readonly Result[], theme: ChartTheme): LineSeriesOption {
  return {
    name: line.name,
    type: "line",
    xAxisIndex: line.panel,
    yAxisIndex: line.panel,
    symbol: "circle",
    symbolSize: 5,
    cursor: "pointer",
    connectNulls: false,
    lineStyle: { ...lineStyle(theme, index), width: 1.5 },
    itemStyle: { color: seriesColour(theme, index) },
    tooltip: { valueFormatter: (value) => (typeof value === "number" ? formatValue(value, "%") : DASH) },
    data: results.map((one, place) => ({
      value: [place + 1, line.values[place] ?? null],
      name: one.job_id,
      experimentId: one.experiment_id,
      jobId: one.job_id,
    })),
  };
}

function buildTable(results: readonly Result[]): Drawing["table"] {
  const names = [...new Set(results.flatMap((one) => Object.keys(one.canary)))];
  const formatCell = (value: number | null | undefined, unit: string): string =>
    value == null ? DASH : formatValue(value, unit);
  return {
    columns: ["result", "ended", "grade", ...names.map((name) => CANARY_TITLES[name] ?? name), NOISE],
    rows: results.map((one) => [
      one.title,
      one.ended_at ? formatInstant(one.ended_at) : DASH,
      one.grade,
      ...names.map((name) => formatCell(one.canary[name], "ms")),
      formatCell(one.noise == null ? null : 100 * one.noise, "%"),
    ]),
  };
}
