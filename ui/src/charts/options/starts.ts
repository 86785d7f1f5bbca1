// The starts of a job's runs in, cold against warm out: load, first answer and the warm median, run by run.
import type { EChartsOption, ScatterSeriesOption } from "echarts";

import type { Estimate, Starts } from "@/api/schema";
import { DASH, plain, text } from "@/components/number";
import type { ChartTheme } from "../theme";
import { base, colour, valueAxis, type Drawing } from "./drawing";
import { intervalBars, standing } from "./intervals";

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

export function startsDrawing(starts: Starts, theme: ChartTheme): Drawing {
  const values = starts.runs.flatMap((run) => PHASES.map(({ phase }) => run[phase])).filter(isNumber);
  const option: EChartsOption = {
    ...base(theme),
    grid: { left: 160, right: 24, top: 8, bottom: 44 },
    xAxis: {
      ...valueAxis(theme, values, "", starts.unit),
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
      const interval = standing(row, estimateOf(starts, phase));
      return [intervalBars(interval, { color: colour(theme, row), along: "x" }), dots(starts, phase, { name, symbol, row }, theme)];
    }),
  };
  return { option, table: tableOf(starts), height: 180 };
}

interface Row {
  name: string;
  symbol: string;
  row: number;
}

function dots(starts: Starts, phase: Phase, { name, symbol, row }: Row, theme: ChartTheme): ScatterSeriesOption {
  return {
    name,
    type: "scatter",
    symbol,
    symbolSize: 8,
    itemStyle: { color: colour(theme, row), opacity: 0.85 },
    data: starts.runs.flatMap((run) => {
      const value = run[phase];
      return isNumber(value) ? [{ value: [value, row], name: `run ${String(run.repetition)}` }] : [];
    }),
    tooltip: { formatter: (one) => dotText(one, starts.unit) },
  };
}

function dotText(one: unknown, unit: string): string {
  const { name, value } = one as { name: string; value: [number, number] };
  return `${name}: ${plain(value[0], unit)}`;
}

function estimateOf(starts: Starts, phase: Phase): Estimate | undefined {
  return KEYS[phase].map((key) => starts.estimates[key]).find((one) => one !== undefined);
}

function tableOf(starts: Starts): Drawing["table"] {
  const all = PHASES.map(({ phase }) => {
    const estimate = estimateOf(starts, phase);
    return estimate === undefined ? DASH : text(estimate);
  });
  return {
    columns: ["run", ...PHASES.map((one) => one.name)],
    rows: [["all runs", ...all], ...starts.runs.map((run) => rowOf(run, starts.unit))],
  };
}

function rowOf(run: Run, unit: string): string[] {
  const name = `run ${String(run.repetition)}${run.is_used ? "" : " (not used)"}`;
  return [name, ...PHASES.map(({ phase }) => (isNumber(run[phase]) ? plain(run[phase], unit) : DASH))];
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}
