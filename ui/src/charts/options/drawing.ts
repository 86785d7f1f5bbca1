// What all charts share: axes, legends, colours, and the table that goes with each chart.
import type { EChartsOption, TooltipComponentOption } from "echarts";

import { chooseScale, formatTick } from "@/components/number";

import type { ChartTheme } from "../theme";

export interface DataTable {
  columns: string[];
  rows: string[][];
}

export interface Drawing {
  option: EChartsOption;
  table: DataTable;
  height: number;
}

/** Beyond this ratio of the largest to the smallest, small numbers cannot be told apart on a straight axis. */
const WIDE = 30;

/** Return what all charts share: colours, type, and a tooltip that is drawn and never parsed as HTML. */
export function baseOption(theme: ChartTheme): EChartsOption {
  return {
    animation: false,
    color: [...theme.series],
    textStyle: { color: theme.text, fontFamily: theme.font, fontSize: 12 },
    tooltip: tooltipOption(theme),
  };
}

export function tooltipOption(theme: ChartTheme): TooltipComponentOption {
  return {
    // Names come from devices and recipes: drawn on the canvas, they can be nothing but text.
    renderMode: "richText",
    confine: true,
    backgroundColor: theme.surface,
    borderColor: theme.grid,
    textStyle: { color: theme.text, fontFamily: theme.font, fontSize: 12 },
  };
}

export function legendOption(theme: ChartTheme, names: string[]): EChartsOption["legend"] {
  return {
    data: names,
    top: 0,
    left: 0,
    type: "scroll",
    itemWidth: 18,
    itemHeight: 8,
    textStyle: { color: theme.text },
    pageTextStyle: { color: theme.muted },
  };
}

/** Return a name with the unit that suits the numbers, and marks in that unit: as `Quantity` and tables write them. */
function buildAxisLabels(sizes: readonly number[], name: string, unit: string) {
  const scale = chooseScale(sizes.length === 0 ? [{ value: 0, unit }] : sizes.map((value) => ({ value, unit })));
  return {
    name: [name, scale.symbol].filter(Boolean).join(", "),
    axisLabel: { formatter: (value: number) => formatTick(value, scale) },
  };
}

/** Return a value axis, logarithmic where the numbers lie far apart and all are above zero. */
export function buildValueAxis(
  theme: ChartTheme,
  values: readonly number[],
  title: string,
  unit: string,
  zero = false,
) {
  const least = Math.min(...values);
  const most = Math.max(...values);
  const isWide = !zero && values.length > 0 && least > 0 && most / least > WIDE;
  // A straight axis is read by its far end, a logarithmic one by its middle.
  const { name, axisLabel } = buildAxisLabels(
    isWide || values.length === 0 ? values : [Math.max(Math.abs(least), Math.abs(most))],
    title,
    unit,
  );
  return {
    type: isWide ? ("log" as const) : ("value" as const),
    name,
    nameTextStyle: { color: theme.muted, align: "left" as const },
    nameGap: 10,
    scale: !zero,
    ...(zero ? { min: 0 } : {}),
    axisLabel: { color: theme.muted, hideOverlap: true, ...axisLabel },
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: theme.grid } },
  };
}

/** Return a bottom axis: its name stands in the middle below it, and it has a line of its own. */
export function buildBottomAxis(theme: ChartTheme, title: string, most = 0, unit = "1") {
  const { name, axisLabel } = buildAxisLabels([most], title, unit);
  return {
    type: "value" as const,
    name,
    nameLocation: "middle" as const,
    nameGap: 26,
    nameTextStyle: { color: theme.muted },
    axisLabel: { color: theme.muted, hideOverlap: true, ...axisLabel },
    axisLine: { show: true, lineStyle: { color: theme.grid } },
    axisTick: { show: false },
    splitLine: { show: false },
  };
}

/** Each line has a dash of its own beside its colour, so that none is told by colour alone. */
const DASHES = ["solid", [6, 3], [2, 3], [8, 3, 2, 3], [1, 2], [10, 4]] as const;

export function lineStyle(theme: ChartTheme, index: number): { color: string; type: "solid" | number[] } {
  const dash = DASHES[index % DASHES.length] ?? "solid";
  return { color: seriesColour(theme, index), type: dash === "solid" ? dash : [...dash] };
}

export function seriesColour(theme: ChartTheme, index: number): string {
  return theme.series[index % theme.series.length] ?? theme.text;
}
