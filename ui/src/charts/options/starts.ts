// Builds the chart options for cold and warm starts: load, first answer and warm median of each run.
import type { EChartsOption, ScatterSeriesOption } from "echarts";

import type { Estimate, Starts } from "@/api/schema";
import { DASH, formatEstimate, formatValue } from "@/components/number";
import type { ChartTheme } from "../theme";
import { baseOption, buildValueAxis, type Drawing, seriesColour } from "./drawing";
import { drawIntervalBars, placeInterval } from "./intervals";

type Run = Starts["runs"][number];
type Phase = "load" | "first" | "warm";

const PHASES: readonly { phase: Phase; name: string; symbol: string }[] = [
  { phase: "load", name: "load (cold)", symbol: "rect" },
  { phase: "first", name: "first inference (cold)", symbol: "triangle" },
  { phase: "warm", name: "warm, median of a run", symbol: "circle" },
];
/** The estimates that belong to each of the three, as far as a job has them. */
const KEYS: Record<Phase, readonly string[]> = {
  load: ["load_ms.p50"],
  first: ["first_inference_ms.p50", "first_ms.p50"],
  warm: ["inference_ms.p50", "e2e_ms.p50"],
};

export function drawStarts(starts: Starts, theme: ChartTheme): Drawing {
  const values = starts.runs.flatMap((run) => PHASES.map(({ phase }) => run[phase])).filter(isNumber);
  const option: EChartsOption = {
    ...baseOption(theme),
    grid: { left: 160, right: 24, top: 8, bottom: 44 },
    xAxis: {
      ...buildValueAxis(theme, values, "", starts.unit),
      nameLocation: "middle",
      nameGap: 26,
    },
    yAxis: {
      type: "category",
      data: PHASES.map((one) => one.name),
      inverse: true,
      axisLabel: { color: theme.text },
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { show: false },
    },
    series: PHASES.flatMap(({ phase, name, symbol }, row) => {
      const interval = placeInterval(row, findEstimate(starts, phase));
      return [
        drawIntervalBars(interval, { color: seriesColour(theme, row), along: "x" }),
        drawDots(starts, phase, { name, symbol, row }, theme),
      ];
    }),
  };
  return { option, table: buildTable(starts), height: 180 };
}

interface Row {
  name: string;
  symbol: string;
  row: number;
}

function drawDots(starts: Starts, phase: Phase, { name, symbol, row }: Row, theme: ChartTheme): ScatterSeriesOption {
  return {
    name,
    type: "scatter",
    symbol,
    symbolSize: 8,
    itemStyle: { color: seriesColour(theme, row), opacity: 0.85 },
    data: starts.runs.flatMap((run) => {
      const value = run[phase];
      return isNumber(value) ? [{ value: [value, row], name: `run ${String(run.repetition)}` }] : [];
    }),
    tooltip: { formatter: (one) => formatDot(one, starts.unit) },
  };
}

function formatDot(one: unknown, unit: string): string {
  const { name, value } = one as { name: string; value: [number, number] };
  return `${name}: ${formatValue(value[0], unit)}`;
}

function findEstimate(starts: Starts, phase: Phase): Estimate | undefined {
  return KEYS[phase].map((key) => starts.estimates[key]).find((one) => one !== undefined);
}

function buildTable(starts: Starts): Drawing["table"] {
  const all = PHASES.map(({ phase }) => {
    const estimate = findEstimate(starts, phase);
    return estimate === undefined ? DASH : formatEstimate(estimate);
  });
  return {
    columns: ["run", ...PHASES.map((one) => one.name)],
    rows: [["all runs", ...all], ...starts.runs.map((run) => buildRow(run, starts.unit))],
  };
}

function buildRow(run: Run, unit: string): string[] {
  const name = `run ${String(run.repetition)}${run.is_used ? "" : " (not used)"}`;
  return [name, ...PHASES.map(({ phase }) => (isNumber(run[phase]) ? formatValue(run[phase], unit) : DASH))];
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}
