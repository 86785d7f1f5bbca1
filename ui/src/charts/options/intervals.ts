// Builds the chart series for intervals: bars through a point and bands behind a line.
import type { CustomSeriesOption, LineSeriesOption } from "echarts";

import type { Estimate } from "@/api/schema";
import { intervalOf } from "@/components/number";

export interface Interval {
  /** Where it stands on the other axis. */
  at: number;
  low: number;
  high: number;
}

/** Return where the interval of an estimate stands; nothing where none can be vouched for. */
export function placeInterval(at: number, estimate: Estimate | null | undefined): Interval[] {
  const ends = estimate ? intervalOf(estimate) : null;
  return ends ? [{ at, low: ends[0], high: ends[1] }] : [];
}

interface BarStyle {
  color: string;
  axes?: { xAxisIndex?: number; yAxisIndex?: number };
  /** Along which axis the interval lies. */
  along?: "x" | "y";
}

/** Return a series that draws each interval as a thick translucent stroke. */
export function drawIntervalBars(
  intervals: readonly Interval[],
  { color, axes, along = "y" }: BarStyle,
): CustomSeriesOption {
  return {
    type: "custom",
    silent: true,
    z: 1,
    ...axes,
    // `encode` makes the axis wide enough for both ends.
    encode: along === "y" ? { x: 0, y: [1, 2] } : { x: [1, 2], y: 0 },
    data: intervals.map((one) => [one.at, one.low, one.high]),
    tooltip: { show: false },
    renderItem: (_params, api) => {
      const at = Number(api.value(0));
      const place = (value: number) => api.coord(along === "y" ? [at, value] : [value, at]);
      const [x1 = 0, y1 = 0] = place(Number(api.value(1)));
      const [x2 = 0, y2 = 0] = place(Number(api.value(2)));
      return {
        type: "line",
        shape: { x1, y1, x2, y2 },
        style: { stroke: color, lineWidth: 4, opacity: 0.45, lineCap: "round" },
      };
    },
  };
}

export interface BandPoint {
  at: number;
  low: number | null;
  high: number | null;
}

/** Return two stacked series that fill what lies between low and high. */
export function drawBand(
  places: readonly BandPoint[],
  color: string,
  axes: { xAxisIndex?: number; yAxisIndex?: number } = {},
): LineSeriesOption[] {
  const shared: LineSeriesOption = {
    type: "line",
    stack: `band ${color} ${String(axes.yAxisIndex ?? 0)}`,
    // Otherwise values below zero are stacked apart from those above it.
    stackStrategy: "all",
    symbol: "none",
    silent: true,
    lineStyle: { opacity: 0 },
    tooltip: { show: false },
    ...axes,
  };
  return [
    { ...shared, data: places.map((one) => [one.at, one.low]) },
    {
      ...shared,
      data: places.map((one) => [one.at, one.low === null || one.high === null ? null : one.high - one.low]),
      areaStyle: { color, opacity: 0.2 },
    },
  ];
}
