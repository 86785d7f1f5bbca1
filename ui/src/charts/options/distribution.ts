// Distributions of one metric in, their overlay out: how often each value came, or the share that lies below it.
import type { EChartsOption, LineSeriesOption } from "echarts";

import type { Distribution } from "@/api/schema";
import { DASH, intervalOf, plain, share as percent, text } from "@/components/number";
import type { ChartTheme } from "../theme";
import { base, bottomAxis, colour, legend, stroke, tooltip, valueAxis, type DataTable, type Drawing } from "./drawing";

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
  const wide = valueAxis(theme, edges, "").type;
  const option: EChartsOption = {
    ...base(theme),
    tooltip: { ...tooltip(theme), trigger: "axis", valueFormatter: (value) => percent(Number(value)) },
    grid: { left: 56, right: 16, top: 40, bottom: 44 },
    ...(shown.length > 1 ? { legend: legend(theme, shown.map((one) => one.name)) } : {}),
    xAxis: {
      ...bottomAxis(theme, first === undefined ? "" : axisName(first)),
      type: wide,
      ...(edges.length > 0 ? { min: Math.min(...edges), max: Math.max(...edges) } : {}),
    },
    yAxis: {
      ...valueAxis(theme, [0, 1], view === "ecdf" ? "share at or below" : "share of samples in a bin", true),
      ...(view === "ecdf" ? { max: 1 } : {}),
    },
    series: shown.flatMap((one, index) => (view === "ecdf" ? climbs(one, index, theme) : [bins(one, index, theme)])),
  };
  return { option, table: quantileTable(shown), height: 280 };
}

function bins({ name, distribution }: NamedDistribution, index: number, theme: ChartTheme): LineSeriesOption {
  const places = distribution.counts.map((count, at) => [distribution.edges[at], share(count, distribution.count)]);
  const end = distribution.edges.at(-1);
  return {
    name,
    type: "line",
    step: "end",
    symbol: "none",
    lineStyle: { ...stroke(theme, index), width: 1.5 },
    areaStyle: { color: colour(theme, index), opacity: 0.16 },
    // A step holds from an edge to the next, so the last one needs the end of its bin.
    data: end === undefined ? places : [...places, [end, share(distribution.counts.at(-1) ?? 0, distribution.count)]],
    ...medianMark(distribution, colour(theme, index), theme),
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
    ...medianMark(distribution, colour(theme, index), theme),
  };
  return [edge("low"), edge("high"), line];
}

/** The median stands as a line, with its interval as a strip where one can be vouched for. */
function medianMark(distribution: Distribution, color: string, theme: ChartTheme): Partial<LineSeriesOption> {
  const median = distribution.estimates[`${distribution.metric}.p50`];
  if (median === undefined) return {};
  const ends = intervalOf(median);
  return {
    markLine: {
      silent: true,
      symbol: "none",
      label: { formatter: "median", color: theme.muted, fontSize: 11 },
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

function axisName(distribution: Distribution): string {
  return `${distribution.metric}, ${distribution.unit}`;
}

function share(count: number, all: number): number {
  return all === 0 ? 0 : count / all;
}
