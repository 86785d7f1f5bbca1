// Builds the chart options for overlaid distributions: a histogram on shared bins, or the ECDF.
import type { EChartsOption, LineSeriesOption } from "echarts";

import type { Distribution } from "@/api/schema";
import { DASH, formatEstimate, formatShare as percent, formatValue, intervalOf } from "@/components/number";
import type { ChartTheme } from "../theme";
import {
  baseOption,
  buildBottomAxis,
  buildValueAxis,
  type DataTable,
  type Drawing,
  legendOption,
  lineStyle,
  seriesColour,
  tooltipOption,
} from "./drawing";

const BULK = 0.95;
const FAR = 1.5;
/** From so wide a range on a logarithmic axis shows more. */
const WIDE = 5;
const [FEWEST, MOST] = [12, 60];

export type DistributionView = "histogram" | "ecdf";

/** What is drawn of one job; `name` tells it from the others. */
export interface NamedDistribution {
  name: string;
  distribution: Distribution;
}

export function drawDistribution(
  shown: readonly NamedDistribution[],
  title: string,
  view: DistributionView,
  theme: ChartTheme,
): Drawing {
  const first = shown[0]?.distribution;
  const edges = shown.flatMap((one) => one.distribution.edges);
  const end = findBulkEnd(shown);
  const [low, high] = roundEnds(Math.min(...edges), end ?? Math.max(...edges));
  const isLog = low > 0 && high / low > WIDE;
  const grid = buildGrid(shown, low, high, isLog);
  const axis = buildBottomAxis(theme, title, high, first?.unit);
  const option: EChartsOption = {
    ...baseOption(theme),
    tooltip: { ...tooltipOption(theme), trigger: "axis", valueFormatter: (value) => percent(Number(value)) },
    grid: { left: 56, right: 24, top: 52, bottom: 44 },
    ...(shown.length > 1
      ? {
          legend: legendOption(
            theme,
            shown.map((one) => one.name),
          ),
        }
      : {}),
    xAxis: {
      ...axis,
      type: isLog ? "log" : "value",
      ...(edges.length > 0 ? { min: low, max: high } : {}),
    },
    yAxis: {
      ...buildValueAxis(theme, [0, 1], view === "ecdf" ? "share at or below" : "share of samples in a bin", "1", true),
      ...(view === "ecdf" ? { max: 1 } : {}),
    },
    series: shown.flatMap((one, index) =>
      view === "ecdf" ? drawEcdf(one, index, theme) : [drawHistogram(one, index, grid, theme)],
    ),
  };
  const note = describeFarSamples(shown, end);
  return { option, table: buildQuantileTable(shown), height: 280, ...(note && { note }) };
}

function drawHistogram(
  { name, distribution }: NamedDistribution,
  index: number,
  grid: readonly number[],
  theme: ChartTheme,
): LineSeriesOption {
  const shares = countSamples(distribution, grid).map((count) => computeShare(count, distribution.count));
  return {
    name,
    type: "line",
    step: "end",
    symbol: "none",
    lineStyle: { ...lineStyle(theme, index), width: 1.5 },
    itemStyle: { color: seriesColour(theme, index) },
    areaStyle: { color: seriesColour(theme, index), opacity: 0.16 },
    // A step holds from an edge to the next, so the last one needs the end of its bin.
    data: grid.map((edge, at) => [edge, shares[Math.min(at, shares.length - 1)] ?? 0]),
    ...buildMedianMark(distribution, seriesColour(theme, index)),
  };
}

/** Return the edges of bins that all share, as wide as the spread of the samples and their number ask (Freedman and Diaconis). */
export function buildGrid(shown: readonly NamedDistribution[], low: number, high: number, isLog: boolean): number[] {
  const along = isLog ? Math.log : (value: number) => value;
  const widths = shown.flatMap(({ distribution: { ecdf, count } }) => {
    const quantile = (least: number) => ecdf.find((place) => place.share >= least)?.value;
    const [begin, end] = [quantile(0.25), quantile(0.75)];
    const width = begin !== undefined && end !== undefined ? (2 * (along(end) - along(begin))) / Math.cbrt(count) : 0;
    return width > 0 ? [width] : [];
  });
  const wanted = widths.length === 0 ? MOST : (along(high) - along(low)) / Math.min(...widths);
  const known = Math.max(1, ...shown.map(({ distribution }) => distribution.counts.length));
  const count = Math.min(Math.max(Math.round(wanted), FEWEST), MOST, known);
  const back = isLog ? Math.exp : (value: number) => value;
  return Array.from({ length: count + 1 }, (_, at) =>
    at === count ? high : back(along(low) + (at * (along(high) - along(low))) / count),
  );
}

/** Return how many samples lie between each two edges; a bin that reaches over an edge is shared out by its width. */
export function countSamples(
  { edges, counts }: Pick<Distribution, "edges" | "counts">,
  grid: readonly number[],
): number[] {
  return grid.slice(1).map((end, place) => {
    const begin = grid[place] ?? end;
    return counts.reduce((sum, count, at) => {
      const [from = 0, to = 0] = [edges[at], edges[at + 1]];
      const common = Math.min(to, end) - Math.max(from, begin);
      return common > 0 ? sum + (count * common) / (to - from) : sum;
    }, 0);
  });
}

/** The share lies on the upright axis, so the runs' lowest and highest values are lines of their own, left and right. */
function drawEcdf({ name, distribution }: NamedDistribution, index: number, theme: ChartTheme): LineSeriesOption[] {
  const drawEdge = (side: "low" | "high"): LineSeriesOption => ({
    type: "line",
    symbol: "none",
    silent: true,
    lineStyle: { color: seriesColour(theme, index), width: 0.75, opacity: 0.5 },
    tooltip: { show: false },
    data: distribution.ecdf.map((place) => [place[side], place.share]),
  });
  const line: LineSeriesOption = {
    name,
    type: "line",
    symbol: "none",
    lineStyle: { ...lineStyle(theme, index), width: 1.75 },
    itemStyle: { color: seriesColour(theme, index) },
    data: distribution.ecdf.map((place) => [place.value, place.share]),
    ...buildMedianMark(distribution, seriesColour(theme, index)),
  };
  return [drawEdge("low"), drawEdge("high"), line];
}

/** The median stands as a line, with its interval as a strip where one can be vouched for. */
function buildMedianMark(distribution: Distribution, color: string): Partial<LineSeriesOption> {
  const median = distribution.estimates[`${distribution.metric}.p50`];
  if (median === undefined) return {};
  const ends = intervalOf(median);
  return {
    markLine: {
      silent: true,
      symbol: "none",
      // Else it stands where the value is when rounded to two decimals.
      precision: -1,
      label: { show: false },
      lineStyle: { color, type: "solid", width: 1 },
      data: [{ xAxis: median.value }],
    },
    ...(ends && {
      markArea: { silent: true, itemStyle: { color, opacity: 0.2 }, data: [[{ xAxis: ends[0] }, { xAxis: ends[1] }]] },
    }),
  };
}

function buildQuantileTable(shown: readonly NamedDistribution[]): DataTable {
  const keys = [...new Set(shown.flatMap((one) => Object.keys(one.distribution.estimates)))];
  return {
    columns: ["", "samples", "least", "most", ...keys],
    rows: shown.map(({ name, distribution }) => [
      name,
      String(distribution.count),
      formatValue(distribution.edges[0] ?? NaN, distribution.unit),
      formatValue(distribution.edges.at(-1) ?? NaN, distribution.unit),
      ...keys.map((key) => {
        const estimate = distribution.estimates[key];
        return estimate === undefined ? DASH : formatEstimate(estimate);
      }),
    ]),
  };
}

function describeFarSamples(shown: readonly NamedDistribution[], end: number | null): string {
  if (end === null) return "";
  const most = Math.max(...shown.map(({ distribution }) => distribution.edges.at(-1) ?? end));
  const beyond = Math.max(
    ...shown.map(
      ({ distribution }) => 1 - computeShare(countSamples(distribution, [-Infinity, end])[0] ?? 0, distribution.count),
    ),
  );
  return `${percent(beyond)} of the samples lie farther right, up to ${formatValue(most, shown[0]?.distribution.unit)}.`;
}

/** Return where to cut the axis, so that a handful of far samples does not press all others together; null: nowhere. */
function findBulkEnd(shown: readonly NamedDistribution[]): number | null {
  if (shown.length === 0 || shown.some(({ distribution }) => distribution.ecdf.length === 0)) return null;
  const ends = shown.map(({ distribution: { ecdf } }) => {
    const quantile = (least: number) => ecdf.find((place) => place.share >= least)?.value ?? Infinity;
    return 2 * quantile(BULK) - quantile(0.5);
  });
  const edges = shown.flatMap(({ distribution }) => distribution.edges);
  const [low, most, end] = [Math.min(...edges), Math.max(...edges), Number(Math.max(...ends).toPrecision(3))];
  return most - low > FAR * (end - low) && end > low ? end : null;
}

/** Return ends that need few digits, a hundredth of the range or so farther out: they stand at the axis. */
function roundEnds(low: number, high: number): [number, number] {
  const step = 10 ** (Math.floor(Math.log10(high - low)) - 2);
  if (!Number.isFinite(step) || step <= 0) return [low, high];
  const [below, above] = [Math.floor(low / step) * step, Math.ceil(high / step) * step];
  return [low > 0 && below <= 0 ? low : below, above];
}

function computeShare(count: number, all: number): number {
  return all === 0 ? 0 : count / all;
}
