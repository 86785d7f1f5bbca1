// Builds the chart options for a running load: rate and latencies over the last minutes.
import type { EChartsOption, LineSeriesOption } from "echarts";

import { DASH, formatCount, formatValue } from "@/components/number";
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

/** What is told of a load each second. */
export interface Tick {
  at_s: number;
  rate_per_s: number;
  in_flight: number;
  failed: number;
  p50_ms: number | null;
  p99_ms: number | null;
}

export function drawLiveLoad(ticks: readonly Tick[], theme: ChartTheme): Drawing {
  const option: EChartsOption = {
    ...baseOption(theme),
    axisPointer: { link: [{ xAxisIndex: "all" }] },
    tooltip: { ...tooltipOption(theme), trigger: "axis" },
    legend: legendOption(theme, ["requests a second", "in flight", "p50", "p99"]),
    grid: [
      { left: 64, right: 20, top: 44, height: 120 },
      { left: 64, right: 20, top: 206, height: 110 },
    ],
    xAxis: [
      { ...buildBottomAxis(theme, ""), gridIndex: 0 },
      { ...buildBottomAxis(theme, "s since the run began"), gridIndex: 1 },
    ],
    yAxis: [
      {
        ...buildValueAxis(
          theme,
          ticks.map((one) => Math.max(one.rate_per_s, one.in_flight)),
          "requests",
          "1",
          true,
        ),
        gridIndex: 0,
      },
      {
        ...buildValueAxis(
          theme,
          ticks.flatMap((one) => one.p99_ms ?? one.p50_ms ?? []),
          "end to end",
          "ms",
          true,
        ),
        gridIndex: 1,
      },
    ],
    series: [
      drawLine(
        "requests a second",
        0,
        0,
        ticks.map((one) => [one.at_s, one.rate_per_s]),
        theme,
      ),
      drawLine(
        "in flight",
        0,
        1,
        ticks.map((one) => [one.at_s, one.in_flight]),
        theme,
      ),
      drawLine(
        "p50",
        1,
        2,
        ticks.map((one) => [one.at_s, one.p50_ms]),
        theme,
      ),
      drawLine(
        "p99",
        1,
        3,
        ticks.map((one) => [one.at_s, one.p99_ms]),
        theme,
      ),
    ],
  };
  return { option, table: buildTable(ticks), height: 370 };
}

function drawLine(
  name: string,
  panel: number,
  tint: number,
  data: [number, number | null][],
  theme: ChartTheme,
): LineSeriesOption {
  return {
    name,
    type: "line",
    xAxisIndex: panel,
    yAxisIndex: panel,
    symbol: "none",
    connectNulls: false,
    lineStyle: { ...lineStyle(theme, tint), width: 1.5 },
    itemStyle: { color: seriesColour(theme, tint) },
    data,
  };
}

function buildTable(ticks: readonly Tick[]): Drawing["table"] {
  const formatMs = (value: number | null): string => (value === null ? DASH : formatValue(value, "ms"));
  return {
    columns: ["second", "requests a second", "in flight", "failed", "p50", "p99"],
    rows: ticks.map((one) => [
      one.at_s.toFixed(0),
      formatValue(one.rate_per_s),
      formatCount(one.in_flight),
      formatCount(one.failed),
      formatMs(one.p50_ms),
      formatMs(one.p99_ms),
    ]),
  };
}
