import type { CustomSeriesOption, LineSeriesOption, SeriesOption } from "echarts";
import { describe, expect, it } from "vitest";

import { fakeCurve } from "../../../tests/fakes/analysis";
import { FAKE_CHART_THEME } from "../../../tests/fakes/theme";
import type { Drawing } from "./drawing";
import { drawSweep } from "./sweep";

function listSeries(drawing: Drawing): SeriesOption[] {
  return drawing.option.series as SeriesOption[];
}

function findSeries(drawing: Drawing, name: string): SeriesOption | undefined {
  return listSeries(drawing).find((one) => one.name === name);
}

describe("a sweep", () => {
  it("draws an interval for each level that has one", () => {
    const bars = listSeries(drawSweep(fakeCurve(), FAKE_CHART_THEME)).find(
      (one) => one.type === "custom",
    ) as CustomSeriesOption;
    expect(bars.data).toHaveLength(5);
    expect((bars.data as number[][])[0]).toEqual([1, 95, 105]);
  });

  it("draws a level that takes no part in the claims hollow", () => {
    const line = findSeries(drawSweep(fakeCurve(), FAKE_CHART_THEME), "throughput") as LineSeriesOption;
    const { surface, series } = FAKE_CHART_THEME;
    const fills = line.data?.map((one) => (one as { itemStyle: { color: string } }).itemStyle.color);
    expect(fills).toEqual([series[0], series[0], series[0], series[0], surface]);
  });

  it("marks no knee where none could be claimed", () => {
    const curve = fakeCurve({ knee: { state: "not found", text: "no saturation found" }, slo: null });
    const marks = listSeries(drawSweep(curve, FAKE_CHART_THEME)).slice(-2) as LineSeriesOption[];
    expect(marks.map((one) => one.markLine?.data)).toEqual([[], []]);
  });
});
