// Builds the chart options for a history: results, levels, change points, and changes of the environment.
import type { CustomSeriesOption, EChartsOption, ScatterSeriesOption } from "echarts";

import type { Change, History, Point } from "@/api/schema";
import { DASH, formatValue } from "@/components/number";
import { formatDay, formatInstant } from "@/components/time";
import type { ChartTheme } from "../theme";
import { baseOption, buildBottomAxis, buildValueAxis, type Drawing, legendOption, seriesColour } from "./drawing";
import { findChangedFacts } from "./facts";

/** From so many results on, one looks at a part of them. */
const MANY = 120;
const CROSS = "path://M-5,-4 L-4,-5 L0,-1 L4,-5 L5,-4 L1,0 L5,4 L4,5 L0,1 L-4,5 L-5,4 L-1,0 Z";
const SYMBOLS: Record<Point["grade"], { name: string; symbol: string }> = {
  valid: { name: "valid", symbol: "circle" },
  suspect: { name: "suspect", symbol: "emptyDiamond" },
  void: { name: "void, not judged", symbol: CROSS },
};

/** What a click on a dot tells. */
export interface PickedResult {
  experimentId: string;
  jobId: string;
}

export function drawHistory(history: History, title: string, theme: ChartTheme, highlighted?: string): Drawing {
  const values = history.points.map((point) => valueOf(point, history.metric)).filter((value) => value !== null);
  const grades = (Object.keys(SYMBOLS) as Point["grade"][]).filter((grade) =>
    history.points.some((point) => point.grade === grade && valueOf(point, history.metric) !== null),
  );
  const many = history.points.length > MANY;
  const option: EChartsOption = {
    ...baseOption(theme),
    legend: legendOption(theme, [...grades.map((grade) => SYMBOLS[grade].name), "level", "environment changed"]),
    grid: [
      { left: 64, right: 72, top: 60, height: 230 },
      { left: 64, right: 72, top: 298, height: 22 },
    ],
    xAxis: [
      { ...buildOrderAxis(history, "", theme), gridIndex: 0, axisLabel: { show: false } },
      { ...buildOrderAxis(history, "results, ordered by commit, else by time", theme), gridIndex: 1 },
    ],
    yAxis: [
      // Its name stands above the names of the changes, which stand where there is one.
      { ...buildValueAxis(theme, values, title, history.unit), gridIndex: 0, nameGap: 26 },
      { type: "value", gridIndex: 1, min: 0, max: 1, show: false },
    ],
    ...(many ? { dataZoom: [buildZoom(history.points.length, theme)] } : {}),
    series: [
      drawLevels(history, theme),
      ...grades.map((grade) => drawResults(history, grade, theme)),
      ...drawHighlights(history, highlighted, theme),
      drawEnvironmentChanges(history, theme),
    ],
  };
  return { option, table: buildTable(history, title), height: many ? 400 : 366 };
}

function buildOrderAxis(history: History, name: string, theme: ChartTheme) {
  const axis = buildBottomAxis(theme, name);
  const day = (place: number) => formatDayOf(history.points[place - 1]);
  return {
    ...axis,
    min: 0.5,
    max: history.points.length + 0.5,
    minInterval: 1,
    axisLabel: { ...axis.axisLabel, formatter: (place: number) => (Number.isInteger(place) ? day(place) : "") },
  };
}

function formatDayOf(point: Point | undefined): string {
  return point === undefined ? "" : formatDay(point.measured_at);
}

function buildZoom(count: number, theme: ChartTheme) {
  return {
    type: "slider" as const,
    xAxisIndex: [0, 1],
    startValue: count - MANY + 0.5,
    endValue: count + 0.5,
    bottom: 4,
    height: 18,
    borderColor: theme.grid,
    textStyle: { color: theme.muted },
    showDataShadow: false,
    labelFormatter: "",
  };
}

function drawResults(history: History, grade: Point["grade"], theme: ChartTheme): ScatterSeriesOption {
  const { name, symbol } = SYMBOLS[grade];
  const color = grade === "void" ? theme.muted : seriesColour(theme, 0);
  return {
    name,
    type: "scatter",
    symbol,
    symbolSize: 8,
    cursor: "pointer",
    itemStyle: { color },
    data: history.points.flatMap((point, index) => {
      const value = valueOf(point, history.metric);
      if (value === null || point.grade !== grade) return [];
      const picked: PickedResult = { experimentId: point.experiment_id, jobId: point.job_id };
      return [{ value: [index + 1, value], name: point.job_id, ...picked }];
    }),
    tooltip: { formatter: (one) => formatResult(one, history) },
    ...(grade === "valid"
      ? {
          markLine: {
            symbol: "none",
            silent: true,
            precision: -1,
            data: [...drawChanges(history, theme), ...drawBaseline(history, theme)],
          },
        }
      : {}),
  };
}

function formatResult(one: unknown, history: History): string {
  const [place, value] = (one as { value: [number, number] }).value;
  const point = history.points[place - 1];
  if (point === undefined) return "";
  const commit = point.facts["commit"];
  return [
    formatValue(value, history.unit),
    `${point.job_id}, ${point.grade}`,
    formatInstant(point.measured_at),
    ...(commit === undefined ? [] : [`commit ${commit.slice(0, 10)}`]),
  ].join("\n");
}

/** Told changes are solid, suspected ones dotted, those that a person knows of or that went away are grey. */
function drawChanges(history: History, theme: ChartTheme) {
  return history.changes
    .filter((change) => change.state !== "rejected" && change.metric === history.metric)
    .flatMap((change) => {
      const place = findResult(history, change.job_id);
      if (place < 0) return [];
      return [
        {
          xAxis: place + 0.5,
          name: change.id,
          lineStyle: {
            color: changeColour(change, theme),
            type: change.state === "suspect" ? ("dotted" as const) : ("solid" as const),
            width: 1.5,
          },
          label: { formatter: formatChange(change), color: theme.text, fontSize: 11, position: "end" as const },
        },
      ];
    });
}

export function changeColour(change: Pick<Change, "kind" | "state">, theme: ChartTheme): string {
  if (change.state === "acknowledged" || change.state === "resolved") return theme.muted;
  const tones: Record<Change["kind"], string> = {
    regression: theme.bad,
    improvement: theme.good,
    drift: theme.warn,
    environment: seriesColour(theme, 3),
  };
  return tones[change.kind];
}

function formatChange(change: Change): string {
  const sign = change.effect >= 0 ? "+" : "−";
  const size = `${sign}${(Math.abs(change.effect) * 100).toPrecision(2)} %`;
  const known = change.state === "acknowledged" ? " (known)" : change.state === "resolved" ? " (over)" : "";
  return `${change.state === "suspect" ? "? " : ""}${change.kind} ${size}${known}`;
}

function drawBaseline(history: History, theme: ChartTheme) {
  const value = history.baseline?.value ?? null;
  if (value === null) return [];
  return [
    {
      yAxis: value,
      lineStyle: { color: theme.muted, type: "dashed" as const, width: 1 },
      label: { formatter: "baseline", color: theme.muted, fontSize: 11, position: "end" as const },
    },
  ];
}

function drawLevels(history: History, theme: ChartTheme): CustomSeriesOption {
  return {
    name: "level",
    type: "custom",
    silent: true,
    z: 1,
    color: theme.text,
    tooltip: { show: false },
    encode: { x: [0, 1], y: [2, 3, 4] },
    data: history.segments.flatMap(({ first_job_id, last_job_id, level }) => {
      const [begin, end] = [findResult(history, first_job_id), findResult(history, last_job_id)];
      if (begin < 0 || end < 0) return [];
      return [[begin + 0.6, end + 1.4, level.median, level.low ?? level.median, level.high ?? level.median]];
    }),
    renderItem: (_params, api) => {
      const [x1 = 0, middle = 0] = api.coord([api.value(0), api.value(2)]);
      const [x2 = 0] = api.coord([api.value(1), api.value(2)]);
      const [, low = 0] = api.coord([api.value(0), api.value(3)]);
      const [, high = 0] = api.coord([api.value(0), api.value(4)]);
      return {
        type: "group",
        children: [
          {
            type: "rect",
            shape: { x: x1, y: high, width: x2 - x1, height: Math.max(low - high, 0) },
            style: { fill: seriesColour(theme, 0), opacity: 0.16 },
          },
          {
            type: "line",
            shape: { x1, y1: middle, x2, y2: middle },
            style: { stroke: theme.text, lineWidth: 1.5 },
          },
        ],
      };
    },
  };
}

function drawHighlights(history: History, highlighted: string | undefined, theme: ChartTheme): ScatterSeriesOption[] {
  if (highlighted === undefined) return [];
  const data = history.points.flatMap((point, index) => {
    const value = valueOf(point, history.metric);
    return value !== null && point.experiment_id === highlighted ? [[index + 1, value]] : [];
  });
  return [
    {
      type: "scatter",
      symbol: "circle",
      symbolSize: 16,
      silent: true,
      // A ring: the result itself is seen inside.
      itemStyle: { color: "transparent", borderColor: theme.text, borderWidth: 1.5 },
      data,
    },
  ];
}

function drawEnvironmentChanges(history: History, theme: ChartTheme): ScatterSeriesOption {
  return {
    name: "environment changed",
    type: "scatter",
    xAxisIndex: 1,
    yAxisIndex: 1,
    symbol: "triangle",
    symbolSize: 9,
    itemStyle: { color: seriesColour(theme, 3) },
    data: findChangedFacts(history.points).map(({ index, facts }) => ({
      value: [index + 1, 0.5],
      name: facts.join("\n"),
    })),
    tooltip: { formatter: (one) => (one as { name: string }).name },
  };
}

function findResult(history: History, jobId: string): number {
  return history.points.findIndex((point) => point.job_id === jobId);
}

function valueOf(point: Point, metric: string): number | null {
  return point.values[metric] ?? null;
}

function buildTable(history: History, title: string): Drawing["table"] {
  const changed = new Map(history.changes.map((change) => [change.job_id, `${change.kind}, ${change.state}`]));
  const facts = new Map(findChangedFacts(history.points).map((one) => [one.index, one.facts.join("; ")]));
  return {
    columns: ["measured", "job", title, "verdict", "change", "environment"],
    rows: history.points.map((point, index) => {
      const value = valueOf(point, history.metric);
      return [
        formatInstant(point.measured_at),
        point.job_id,
        value === null ? DASH : formatValue(value, history.unit),
        point.grade,
        changed.get(point.job_id) ?? "",
        facts.get(index) ?? "",
      ];
    }),
  };
}
