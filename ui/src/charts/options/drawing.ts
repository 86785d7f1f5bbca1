// What all charts share: axes, legends, colours, and the table that goes with each chart.
import type { EChartsOption, TooltipComponentOption } from "echarts";

import { chooseScale, formatTick, type Scale } from "@/components/number";

import type { ChartTheme } from "../theme";

export interface DataTable {
  columns: string[];
  rows: string[][];
}

export interface Drawing {
  option: EChartsOption;
  table: DataTable;
  height: number;
  /** What the picture leaves out; the table has it. */
  note?: string;
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

/** Return the style of a dot, hollow or filled: an empty symbol of the library is white inside, also in the dark. */
export function dotStyle(theme: ChartTheme, color: string, isHollow: boolean) {
  return isHollow ? { color: theme.surface, borderColor: color, borderWidth: 1.5 } : { color };
}

const LEGEND_LINE = 18;

export function legendOption(theme: ChartTheme, names: string[]): EChartsOption["legend"] {
  return {
    data: names,
    top: 0,
    left: 0,
    type: "scroll",
    itemWidth: 18,
    itemHeight: 8,
    // A legend in pages is clipped to its lines, which are as high as the font says and cut the tall letters.
    textStyle: { color: theme.text, lineHeight: LEGEND_LINE },
    pageTextStyle: { color: theme.muted },
    pageIconColor: theme.accent,
    pageIconInactiveColor: theme.grid,
  };
}

/** Return a name with the unit that suits the numbers, and marks in that unit: as `Quantity` and tables write them. */
function buildAxisLabels(sizes: readonly number[], name: string, unit: string) {
  const scale = chooseScale(sizes.length === 0 ? [{ value: 0, unit }] : sizes.map((value) => ({ value, unit })));
  return {
    scale,
    name: [name, scale.symbol].filter(Boolean).join(", "),
    axisLabel: { formatter: (value: number) => formatTick(value, scale) },
  };
}

/** How many marks a straight axis has, more or less. */
const MARKS = 5;

/**
 * Return where the marks stand on an axis that is written in another unit than it is drawn in.
 *
 * By itself the chart chooses round numbers of its own unit. Between units that differ by a power of ten they stay
 * round; 200 MB in MiB, or 500 s in minutes, do not.
 */
function placeMarks(least: number, most: number, scale: Scale): Partial<Marks> {
  const power = Math.log10(scale.factor);
  if (Math.abs(power - Math.round(power)) < 1e-9 || !(most > least)) return {};
  const interval = chooseStep(((most - least) * scale.factor) / MARKS) / scale.factor;
  return {
    interval,
    min: ({ min }) => Math.floor(min / interval) * interval,
    max: ({ max }) => Math.ceil(max / interval) * interval,
  };
}

interface Marks {
  interval: number;
  min: (extent: { min: number }) => number;
  max: (extent: { max: number }) => number;
}

/** Return the next larger of 1, 2 and 5 times a power of ten. */
function chooseStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 5].find((one) => one * power >= least) ?? 10) * power;
}

const MINUTE_S = 60;
const HOUR_S = 3600;

/** Return a bottom axis of seconds that is written in minutes or hours where it is long. */
export function buildElapsedAxis(theme: ChartTheme, since: string, endS: number) {
  const [symbol, size]: [string, number] =
    endS < 3 * MINUTE_S ? ["s", 1] : endS < 3 * HOUR_S ? ["min", MINUTE_S] : ["h", HOUR_S];
  const scale: Scale = { symbol, factor: 1 / size };
  const axis = buildBottomAxis(theme, since && `${symbol} ${since}`);
  const { interval, max } = placeMarks(0, endS, scale);
  return {
    ...axis,
    // Without an end of its own the axis would end where the data does, at a mark that is not round.
    ...(interval === undefined ? {} : { interval, max }),
    axisLabel: { ...axis.axisLabel, formatter: (value: number) => formatTick(value, scale) },
  };
}

/** Return a value axis, logarithmic where the numbers lie far apart and all are above zero. */
export function buildValueAxis(
  theme: ChartTheme,
  values: readonly number[],
  title: string,
  unit: string,
  zero = false,
  isStraight = false,
) {
  const least = Math.min(...values);
  const most = Math.max(...values);
  const isWide = !zero && !isStraight && values.length > 0 && least > 0 && most / least > WIDE;
  // A straight axis is read by its far end, a logarithmic one by its middle.
  const { name, axisLabel, scale } = buildAxisLabels(
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
    ...(isWide || values.length === 0 ? {} : placeMarks(zero ? Math.min(0, least) : least, most, scale)),
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

/** Above the bar of a dot's own interval, and as far from another name as a line is high. */
const RAISED = -12;
const LINE = 14;
/** How many lines above and below its dot a name may stand before it is written over another. */
const MOST_LINES = 6;

interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

interface PlacedName {
  dataIndex?: number;
  seriesIndex: number;
  /** The dot. */
  rect: Rect;
  /** The name; when it is drawn again, moved as it was the last time. */
  labelRect: Rect;
}

export type NameLayout = (name: PlacedName) => { dy: number };

/**
 * Return a layout that keeps names off each other, in pixels: what is near on a phone is far apart on a wide screen.
 *
 * One layout serves all series of a chart. Each name takes the line nearest to its dot that no earlier one has.
 */
export function spreadNames(): NameLayout {
  const taken = new Map<string, Rect>();
  return ({ dataIndex = 0, seriesIndex, rect, labelRect }) => {
    const key = `${seriesIndex} ${dataIndex}`;
    if (taken.has(key)) taken.clear(); // drawn anew
    const place = (dy: number): Rect => ({ ...labelRect, y: rect.y + rect.height / 2 + dy, height: LINE - 1 });
    const isFree = (one: Rect): boolean =>
      one.y >= LINE && ![...taken.values()].some((other) => isOverlapping(one, other));
    const dy = LINES.find((one) => isFree(place(one))) ?? RAISED;
    taken.set(key, place(dy));
    return { dy };
  };
}

/** The lines that a name may take, the nearest first: one up, one down, two up … */
const LINES = [
  RAISED,
  ...Array.from({ length: MOST_LINES }, (_, line) => [RAISED - (line + 1) * LINE, RAISED + (line + 1) * LINE]).flat(),
];

function isOverlapping(one: Rect, other: Rect): boolean {
  return (
    one.x < other.x + other.width &&
    other.x < one.x + one.width &&
    one.y < other.y + other.height &&
    other.y < one.y + one.height
  );
}

/** Return how names beside dots are written. */
export function nameLabel(theme: ChartTheme, labelLayout: NameLayout) {
  return {
    // On a ground of their own: bars of intervals and lines pass behind them.
    label: {
      show: true,
      color: theme.text,
      fontSize: 11,
      formatter: "{b}",
      backgroundColor: theme.surface,
      padding: [1, 3],
    },
    labelLayout,
    z: 4,
  };
}

/** Return the side of a dot on which its name does not run out of the picture. */
export function nameSide(x: number, xs: readonly number[]) {
  const [least, most] = [Math.min(...xs), Math.max(...xs)];
  return { position: x > (least + most) / 2 ? ("left" as const) : ("right" as const) };
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
