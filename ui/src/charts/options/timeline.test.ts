import type { SeriesOption } from "echarts";
import { describe, expect, it } from "vitest";

import { FAKE_CHART_THEME } from "../../../tests/fakes/theme";
import { drawTimeline } from "./timeline";

describe("samples over time", () => {
  it("draws medians above the bands of all runs, and says how many runs are left out", () => {
    const bucket = { at_s: 0, count: 3, failed: 0, low: 1, median: 2, high: 3 };
    const runs = Array.from({ length: 8 }, (_, repetition) => ({
      repetition,
      is_used: true,
      excluded: "",
      begin_s: 0,
      end_s: 1,
      buckets: [bucket],
    }));
    const drawing = drawTimeline(
      { job_id: "j", title: "t", metric: "e2e_ms", unit: "ms", width_s: 1, runs },
      "Inference",
      FAKE_CHART_THEME,
    );
    const [bands, medians] = [false, true].map((named) =>
      (drawing.option.series as SeriesOption[]).filter((one) => (one.name !== undefined) === named),
    );
    expect(Math.min(...(medians ?? []).map((one) => one.z ?? 2))).toBeGreaterThan(
      Math.max(...(bands ?? []).map((one) => one.z ?? 2)),
    );
    expect(drawing.note).toBe("The first 6 of 8 runs are drawn; the table has all.");
  });
});
