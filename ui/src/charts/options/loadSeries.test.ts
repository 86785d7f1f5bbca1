import type { SeriesOption, YAXisComponentOption } from "echarts";
import { expect, it } from "vitest";

import { FAKE_CHART_THEME } from "../../../tests/fakes/theme";
import { drawLoadRun } from "./loadSeries";

it("gives requests in flight an axis of their own, and leaves a gap where nothing was answered", () => {
  const drawing = drawLoadRun(
    {
      repetition: 0,
      is_used: true,
      excluded: "",
      at_s: [1, 2, 2.5],
      rate_per_s: [1000, 0, 900],
      failed_per_s: [0, 4, 0],
      in_flight: [4, 4, 3.5],
      p50_ms: [2, null, 2.5],
      p99_ms: [9, null, 8],
    },
    FAKE_CHART_THEME,
  );
  const series = drawing.option.series as (SeriesOption & { yAxisIndex: number; data: unknown })[];
  expect(series.map((one) => [one.name, one.yAxisIndex])).toEqual([
    ["replies a second", 0],
    ["errors a second", 0],
    ["in flight", 1],
    ["p50", 2],
    ["p99", 2],
  ]);
  expect(series[3]?.data).toEqual([
    [1, 2],
    [2, null],
    [2.5, 2.5],
  ]);
  expect((drawing.option.yAxis as YAXisComponentOption[]).map((one) => one.name)).toEqual([
    "a second",
    "in flight",
    "latency, ms",
  ]);
  expect(drawing.table.rows[1]).toEqual(["2.00", "0", "4.00", "4.00", "–", "–"]);
});
