// Builds the chart options for a sweep: throughput and latency against load, with the knee, the limit and the SLO.
import type { EChartsOption, LineSeriesOption, SeriesOption } from "echarts";

import type { Curve, Estimate } from "@/api/schema";
import { DASH, formatEstimate, formatValue, intervalOf } from "@/components/number";
import type { ChartTheme } from "../theme";
import {
  baseOption,
  buildBottomAxis,
  buildValueAxis,
  dotStyle,
  type Drawing,
  legendOption,
  lineStyle,
  seriesColour,
  tooltipOption,
} from "./drawing";
import { drawIntervalBars, placeInterval } from "./intervals";

type Level = Curve["levels"][number];
type Field = "throughput" | "goodput" | "p50" | "p99";

const LINES: readonly { field: Field; panel: 0 | 1; name: string; tint: number }[] = [
  { field: "throughput", panel: 0, name: "throughput", tint: 0 },
  { field: "goodput", panel: 0, name: "goodput", tint: 2 },
  { field: "p50", panel: 1, name: "end to end p50", tint: 3 },
  { field: "p99", panel: 1, name: "end to end p99", tint: 1 },
];

export function drawSweep(curve: Curve, theme: ChartTheme): Drawing {
  const drawn = LINES.filter(({ field }) => curve.levels.some((level) => level[field]));
  const times = curve.levels.flatMap((level) => [level.p50?.value, level.p99?.value]).filter(isNumber);
  const throughputs = curve.levels.flatMap((level) => level.throughput ?? []);
  const rates = throughputs.map((one) => one.value);
  const unit = throughputs[0]?.unit ?? "1/s";
  const option: EChartsOption = {
    ...baseOption(theme),
    axisPointer: { link: [{ xAxisIndex: "all" }] },
    tooltip: { ...tooltipOption(theme), trigger: "axis" },
    legend: legendOption(
      theme,
      drawn.map((one) => one.name),
    ),
    grid: [
      { left: 64, right: 20, top: 56, height: 170 },
      { left: 64, right: 20, top: 272, height: 150 },
    ],
    xAxis: [
      { ...buildLoadAxis(curve, "", theme), gridIndex: 0 },
      { ...buildLoadAxis(curve, curve.noun, theme), gridIndex: 1 },
    ],
    yAxis: [
      { ...buildValueAxis(theme, rates, "throughput", unit, true), gridIndex: 0 },
      { ...buildValueAxis(theme, times, "end to end", "ms"), gridIndex: 1 },
    ],
    series: [...drawn.flatMap((one) => buildSeries(curve, one, theme)), ...buildMarks(curve, theme)],
  };
  return { option, table: buildTable(curve), height: 470 };
}

function buildLoadAxis(curve: Curve, name: string, theme: ChartTheme) {
  const loads = curve.levels.map((level) => level.load);
  const axis = buildBottomAxis(theme, name, Math.max(...loads));
  // Marked where something was measured, and nowhere else.
  const axisLabel = { ...axis.axisLabel, customValues: loads };
  return {
    ...axis,
    axisLabel,
    type: buildValueAxis(theme, loads, "", "1").type,
    min: Math.min(...loads),
    max: Math.max(...loads),
  };
}

function buildSeries(
  curve: Curve,
  { field, panel, name, tint }: (typeof LINES)[number],
  theme: ChartTheme,
): SeriesOption[] {
  const axes = { xAxisIndex: panel, yAxisIndex: panel };
  const found = curve.levels.flatMap((level) => {
    const estimate = level[field];
    return estimate ? [{ level, estimate }] : [];
  });
  const bars = found.flatMap(({ level, estimate }) => placeInterval(level.load, estimate));
  const line: LineSeriesOption = {
    name,
    type: "line",
    ...axes,
    lineStyle: { ...lineStyle(theme, tint), width: 1.5 },
    itemStyle: { color: seriesColour(theme, tint) },
    symbol: "circle",
    symbolSize: 7,
    tooltip: {
      valueFormatter: (value) => (isNumber(value) ? formatValue(value, found[0]?.estimate.unit ?? "1") : DASH),
    },
    data: found.map(({ level, estimate }) => ({
      value: [level.load, estimate.value],
      // Hollow: shown, and no part of any claim.
      itemStyle: dotStyle(theme, seriesColour(theme, tint), level.excluded !== ""),
    })),
  };
  return [drawIntervalBars(bars, { color: seriesColour(theme, tint), axes }), line];
}

/** What was claimed stands in both panels; a claim that could not be made is not drawn. */
function buildMarks(curve: Curve, theme: ChartTheme): LineSeriesOption[] {
  return [0, 1].map((panel): LineSeriesOption => ({
    type: "line",
    data: [],
    silent: true,
    xAxisIndex: panel,
    yAxisIndex: panel,
    markLine: { symbol: "none", silent: true, precision: -1, data: buildMarkLines(curve, panel, theme) },
    markArea: { silent: true, data: buildMarkAreas(curve, panel, theme) },
  }));
}

function buildMarkLines(curve: Curve, panel: number, theme: ChartTheme) {
  const buildLine = (estimate: Estimate, text: string, color: string, type: "solid" | "dashed") => ({
    xAxis: estimate.value,
    lineStyle: { color, type, width: 1.5 },
    label: { show: panel === 0, formatter: text, color: theme.text, fontSize: 11 },
  });
  const knee = curve.knee.estimate;
  const slo = curve.slo?.estimate;
  return [
    ...(knee ? [buildLine(knee, `knee ${formatValue(knee.value)}`, theme.warn, "solid")] : []),
    ...(slo ? [buildLine(slo, `SLO holds to ${formatValue(slo.value)}`, theme.good, "dashed")] : []),
  ];
}

function buildMarkAreas(curve: Curve, panel: number, theme: ChartTheme) {
  const knee = curve.knee.estimate ? intervalOf(curve.knee.estimate) : null;
  const hasLimit = curve.limit.state === "found" && panel === 0 && curve.limit.estimate;
  const limit = hasLimit ? intervalOf(hasLimit) : null;
  const buildArea = (from: object, to: object, color: string): [object, object] => [
    { ...from, itemStyle: { color, opacity: 0.16 } },
    to,
  ];
  return [
    ...(knee ? [buildArea({ xAxis: knee[0] }, { xAxis: knee[1] }, theme.warn)] : []),
    ...(limit ? [buildArea({ yAxis: limit[0] }, { yAxis: limit[1] }, seriesColour(theme, 0))] : []),
  ];
}

function buildTable(curve: Curve): Drawing["table"] {
  return {
    columns: [curve.noun, ...LINES.map((one) => one.name), "errors", "verdict", "SLO", "the limit was"],
    rows: curve.levels.map((level) => [
      formatValue(level.load, "1"),
      ...LINES.map(({ field }) => formatCell(level[field])),
      formatCell(level.errors),
      level.excluded ? `${level.grade}: ${level.excluded}` : level.grade,
      level.checks.map((check) => check.text).join("; ") || DASH,
      level.bottleneck?.text ?? DASH,
    ]),
  };
}

function formatCell(estimate: Level[Field]): string {
  return estimate ? formatEstimate(estimate) : DASH;
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}
