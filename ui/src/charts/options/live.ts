// How a load goes just now in, its rate and latencies over the last minutes out.
import type { EChartsOption, LineSeriesOption } from "echarts";

import { counted, DASH, plain } from "@/components/number";
import type { ChartTheme } from "../theme";
import { base, bottomAxis, colour, legend, stroke, tooltip, valueAxis, type Drawing } from "./drawing";

/** What is told of a load each second. */
export interface Tick {
  at_s: number;
  rate_per_s: number;
  in_flight: number;
  failed: number;
  p50_ms: number | null;
  p99_ms: number | null;
}

export function liveDrawing(ticks: readonly Tick[], theme: ChartTheme): Drawing {
  const option: EChartsOption = {
    ...base(theme),
    axisPointer: { link: [{ xAxisIndex: "all" }] },
    tooltip: { ...tooltip(theme), trigger: "axis" },
    legend: legend(theme, ["requests a second", "in flight", "p50", "p99"]),
    grid: [
      { left: 64, right: 20, top: 44, height: 120 },
      { left: 64, right: 20, top: 206, height: 110 },
    ],
    xAxis: [{ ...bottomAxis(theme, ""), gridIndex: 0 }, { ...bottomAxis(theme, "s since the run began"), gridIndex: 1 }],
    yAxis: [
      { ...valueAxis(theme, ticks.map((one) => Math.max(one.rate_per_s, one.in_flight)), "requests", "1", true), gridIndex: 0 },
      { ...valueAxis(theme, ticks.flatMap((one) => one.p99_ms ?? one.p50_ms ?? []), "end to end", "ms", true), gridIndex: 1 },
    ],
    series: [
      line("requests a second", 0, 0, ticks.map((one) => [one.at_s, one.rate_per_s]), theme),
      line("in flight", 0, 1, ticks.map((one) => [one.at_s, one.in_flight]), theme),
      line("p50", 1, 2, ticks.map((one) => [one.at_s, one.p50_ms]), theme),
      line("p99", 1, 3, ticks.map((one) => [one.at_s, one.p99_ms]), theme),
    ],
  };
  return { option, table: tableOf(ticks), height: 370 };
}

function line(name: string, panel: number, tint: number, data: [number, number | null][], theme: ChartTheme): LineSeriesOption {
  return { name, type: "line", xAxisIndex: panel, yAxisIndex: panel, symbol: "none", connectNulls: false, lineStyle: { ...stroke(theme, tint), width: 1.5 }, itemStyle: { color: colour(theme, tint) }, data };
}

function tableOf(ticks: readonly Tick[]): Drawing["table"] {
  const ms = (value: number | null): string => (value === null ? DASH : plain(value, "ms"));
  return {
    columns: ["second", "requests a second", "in flight", "failed", "p50", "p99"],
    rows: ticks.map((one) => [one.at_s.toFixed(0), plain(one.rate_per_s), counted(one.in_flight), counted(one.failed), ms(one.p50_ms), ms(one.p99_ms)]),
  };
}
