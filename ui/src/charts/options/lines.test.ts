import type { SeriesOption } from "echarts";
import { expect, it } from "vitest";

import { FAKE_CHART_THEME } from "../../../tests/fakes/theme";
import { drawLines } from "./lines";

it("gives each metric a panel and each set of labels a line of its own, runs alike", () => {
  const line = (metric: string, split: string, repetition: number) => ({
    metric,
    unit: "",
    labels: { split },
    rank: null,
    repetition,
    steps: [0, 1],
    values: [2, 1],
    total: 2,
  });
  const lines = [line("loss", "train", 0), line("loss", "train", 1), line("loss", "test", 0), line("f1", "test", 0)];
  const drawing = drawLines({ job_id: "j", title: "t", lines }, FAKE_CHART_THEME);
  expect(drawing.option.grid).toHaveLength(2);
  expect((drawing.option.series as SeriesOption[]).map((one) => one.name)).toEqual([
    "split=train",
    "split=train",
    "split=test",
    "split=test",
  ]);
  expect(drawing.table.rows[0]).toEqual(["loss", "split=train", "0", "2", "2.00", "1.00", "1.00", "2.00"]);
});
