// Distributions of one metric in, their overlay out: how often each value came, or the share that lies below it.
import type { EChartsOption, LineSeriesOption } from "echarts";

import type { Distribution } from "@/api/schema";
import { DASH, intervalOf, plain, share as percent, text } from "@/components/number";
import type { ChartTheme } from "../theme";
import { base, bottomAxis, colour, legend, stroke, tooltip, valueAxis, type DataTable, type Drawing } from "./drawing";

const BULK = 0.99;
const FAR = 1.5;

export type DistributionView = "histogram" | "ecdf";

/** What is drawn of one job; `name` tells it from the others. */
export interface NamedDistribution {
  name: string;
  distribution: Distribution;
}

export function distributionDrawing(
  shown: readonly NamedDistribution[],
  view: DistributionView,
  theme: ChartTheme,
): Drawing {
  const first = shown[0]?.distribution;
  const edges = shown.flatMap((one) => one.distribution.edges);
  const isLog = shown.some((one) => one.distribution.is_log);
  const end = bulkEnd(shown);
  const most = end ?? Math.max(0, ...edges);
  const option: EChartsOption = {
    ...base(theme),
    tooltip: { ...tooltip(theme), trigger: "axis", valueFormatter: (value) => percent(Number(value)) },
    grid: { left: 56, right: 24, top: 52, bottom: 44 },
    ...(shown.length > 1 ? { legend: legend(theme, shown.map((one) => one.name)) } : {}),
    xAxis: {
      ...bottomAxis(theme, first === undefined ? "" : axisName(first, end), most, first?.unit),
      type: isLog ? "log" : "value",
      ...(edges.length > 0 ? { min: Math.min(...edges), max: most } : {}),
    },
    yAxis: {
      ...valueAxis(theme, [0, 1], view === "ecdf" ? "share at or below" : "share of samples in a bin", "1", true),
      ...(view === "ecdf" ? { max: 1 } : {}),
    },
    series: shown.flatMap((one, index) => (view === "ecdf" ? climbs(one, index, theme) : [bins(one, index, theme)])),
  };
  return { option, table: quantileTable(shown), height: 280 };
}

function bins({ name, distribution }: NamedDistribution, index: number, theme: ChartTheme): LineSeriesOption {
  const { edges, counts } = merged(distribution);
  const places = counts.map((count, at) => [edges[at], share(count, distribution.count)]);
  const end = edges.at(-1);
  return {
    name,
    type: "line",
    step: "end",
    symbol: "none",
    lineStyle: { ...stroke(theme, index), width: 1.5 },
    areaStyle: { color: colour(theme, index), opacity: 0.16 },
    // A step holds from an edge to the next, so the last one needs the end of its bin.
    data: end === undefined ? places : [...places, [end, share(counts.at(-1) ?? 0, distribution.count)]],
    ...medianMark(distribution, colour(theme, index)),
  };
}

/** Put neighbouring bins together until there are about twice the cube root of the samples between the bulk's ends. */
export function merged({ edges, counts, count }: Pick<Distribution, "edges" | "counts" | "count">) {
  let before = 0;
  const bulk = counts.filter((one) => {
    before += one;
    return before - one < BULK * count;
  }).length;
  const size = Math.max(1, Math.round(bulk / Math.max(12, 2 * Math.cbrt(count))));
  const begins = edges.slice(0, -1).filter((_, at) => at % size === 0);
  return {
    edges: [...begins, edges.at(-1) ?? 0],
    counts: begins.map((_, at) => counts.slice(at * size, (at + 1) * size).reduce((sum, one) => sum + one, 0)),
  };
}

/** The share lies on the upright axis, so the runs' lowest and highest values are lines of their own, left and right. */
function climbs({ name, distribution }: NamedDistribution, index: number, theme: ChartTheme): LineSeriesOption[] {
  const edge = (side: "low" | "high"): LineSeriesOption => ({
    type: "line",
    symbol: "none",
    silent: true,
    lineStyle: { color: colour(theme, index), width: 0.75, opacity: 0.5 },
    tooltip: { show: false },
    data: distribution.ecdf.map((place) => [place[side], place.share]),
  });
  const line: LineSeriesOption = {
    name,
    type: "line",
    symbol: "none",
    lineStyle: { ...stroke(theme, index), width: 1.75 },
    data: distribution.ecdf.map((place) => [place.value, place.share]),
    ...medianMark(distribution, colour(theme, index)),
  };
  return [edge("low"), edge("high"), line];
}

/** The median stands as a line, with its interval as a strip where one can be vouched for. */
function medianMark(distribution: Distribution, color: string): Partial<LineSeriesOption> {
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

function quantileTable(shown: readonly NamedDistribution[]): DataTable {
  const keys = [...new Set(shown.flatMap((one) => Object.keys(one.distribution.estimates)))];
  return {
    columns: ["", "samples", "least", "most", ...keys],
    rows: shown.map(({ name, distribution }) => [
      name,
      String(distribution.count),
      plain(distribution.edges[0] ?? NaN, distribution.unit),
      plain(distribution.edges.at(-1) ?? NaN, distribution.unit),
      ...keys.map((key) => {
        const estimate = distribution.estimates[key];
        return estimate === undefined ? DASH : text(estimate);
      }),
    ]),
  };
}

function axisName(distribution: Distribution, end: number | null): string {
  const cut = end === null ? "" : ` (the last percent reaches farther: to ${plain(distribution.edges.at(-1) ?? NaN, distribution.unit)} at most)`;
  return `${distribution.metric}${cut}`;
}

/** Return where to cut the axis, so that a handful of far samples does not press all others together; null: nowhere. */
function bulkEnd(shown: readonly NamedDistribution[]): number | null {
  if (shown.length === 0 || shown.some(({ distribution }) => distribution.ecdf.length === 0)) return null;
  const ends = shown.map(({ distribution }) => distribution.ecdf.find((place) => place.share >= BULK)?.value ?? Infinity);
  const most = Math.max(...shown.flatMap(({ distribution }) => distribution.edges));
  const end = Math.max(...ends) * 1.1;
  return most > FAR * end ? Number(end.toPrecision(3)) : null;
}

function share(count: number, all: number): number {
  return all === 0 ? 0 : count / all;
}
