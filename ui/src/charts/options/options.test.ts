import type { CustomSeriesOption, LineSeriesOption, ScatterSeriesOption, SeriesOption } from "echarts";
import { describe, expect, it } from "vitest";

import {
  fakeCurve,
  fakeDistribution,
  fakeEstimate,
  fakeHistory,
  fakeMatrix,
  fakePoint,
} from "../../../tests/fakes/analysis";
import { fakeJobPlot } from "../../../tests/fakes/results";
import { FAKE_CHART_THEME } from "../../../tests/fakes/theme";
import { buildGrid, countSamples, drawDistribution } from "./distribution";
import type { Drawing } from "./drawing";
import { findChangedFacts } from "./facts";
import { buildHeatCells } from "./heat";
import { drawHistory } from "./history";
import { drawJobPlot } from "./jobPlot";
import { drawPareto } from "./pareto";
import { drawSparkline } from "./sparkline";
import { drawStarts } from "./starts";
import { drawSweep } from "./sweep";
import { drawTelemetry } from "./telemetry";
import { drawTimeline } from "./timeline";

function listSeries(drawing: Drawing): SeriesOption[] {
  return drawing.option.series as SeriesOption[];
}

function findSeries(drawing: Drawing, name: string): SeriesOption {
  const found = listSeries(drawing).find((one) => one.name === name);
  if (found === undefined) throw new Error(`no series is called ${name}`);
  return found;
}

describe("every drawing", () => {
  const drawings = [
    drawDistribution([{ name: "a", distribution: fakeDistribution() }], "Inference", "histogram", FAKE_CHART_THEME),
    drawHistory(fakeHistory(), "Inference p50", FAKE_CHART_THEME),
    drawPareto(fakeMatrix(), "Inference p50", FAKE_CHART_THEME),
    drawSweep(fakeCurve(), FAKE_CHART_THEME),
    drawJobPlot(fakeJobPlot(), FAKE_CHART_THEME),
  ];

  it("draws its tooltips and never parses them as HTML", () => {
    for (const { option } of drawings) expect(option.tooltip).toMatchObject({ renderMode: "richText" });
  });

  it("has a table with a cell for each column", () => {
    for (const { table } of drawings) {
      expect(table.rows.length).toBeGreaterThan(0);
      for (const row of table.rows) expect(row).toHaveLength(table.columns.length);
    }
  });
});

describe("an axis", () => {
  const readAxis = (drawing: Drawing) => {
    const axis = drawing.option.yAxis as
      | { name: string; axisLabel: { formatter: (value: number) => string } }
      | { name: string; axisLabel: { formatter: (value: number) => string } }[];
    const first = Array.isArray(axis) ? axis[0] : axis;
    if (first === undefined) throw new Error("it has no axis");
    return {
      name: first.name,
      marks: (...values: number[]) => values.map((value) => first.axisLabel.formatter(value)),
    };
  };

  it("is marked in the unit in which tables write the same numbers", () => {
    const level = fakeCurve().levels[0];
    if (!level) throw new Error("it has no level");
    const levels = [10e6, 60e6].map((value, index) => ({
      ...level,
      load: index + 1,
      throughput: fakeEstimate({ value, unit: "1/s", low: null, high: null }),
    }));
    const drawing = drawSweep(fakeCurve({ levels }), FAKE_CHART_THEME);
    const axis = readAxis(drawing);
    expect(axis.name).toBe("throughput, M/s");
    expect(axis.marks(0, 20e6, 62.5e6)).toEqual(["0", "20", "62.5"]);
    expect(drawing.table.rows[1]?.[1]).toBe("60.0 M/s");
  });

  it("groups what a prefix cannot shorten", () => {
    const points = [25_000_000, 26_000_000].map((value, index) =>
      fakePoint(index, { value, values: { "inference_ms.p50": value } }),
    );
    const axis = readAxis(
      drawHistory(fakeHistory({ points, segments: [], changes: [] }), "Inference p50", FAKE_CHART_THEME),
    );
    expect(axis.name).toBe("Inference p50, s");
    expect(axis.marks(26_000_000)).toEqual(["26\u202f000"]);
  });
});

describe("a distribution", () => {
  const shown = [
    { name: "before", distribution: fakeDistribution() },
    { name: "after", distribution: fakeDistribution({ counts: [1, 9] }) },
  ];

  it("shows shares, so that jobs with unlike numbers of samples can be laid over each other", () => {
    const line = findSeries(
      drawDistribution(shown, "Inference", "histogram", FAKE_CHART_THEME),
      "before",
    ) as LineSeriesOption;
    expect(line.data).toEqual([
      [1, 0.4],
      [2, 0.6],
      [3, 0.6],
    ]);
  });

  it("has the same bins for all that are laid over each other, as wide as the samples ask", () => {
    const ecdf = [0, 0.25, 0.5, 0.75, 1].map((share) => ({ share, value: 100 * share, low: 0, high: 0 }));
    const one = {
      name: "one",
      distribution: fakeDistribution({
        edges: Array.from({ length: 241 }, (_, at) => at),
        counts: Array.from({ length: 240 }, () => 1),
        count: 240,
        ecdf,
      }),
    };
    const grid = buildGrid([one, { ...one, name: "other" }], 0, 240, false);
    expect(grid).toHaveLength(16);
    expect([grid[0], grid.at(-1)]).toEqual([0, 240]);
    expect(countSamples(one.distribution, grid)).toEqual(Array.from({ length: 15 }, () => 16));
    expect(countSamples({ edges: [0, 10], counts: [4] }, [0, 5, 7.5])).toEqual([2, 1]);
  });

  it("cuts its axis where a few samples lie far off, and says how many and how far", () => {
    const ecdf = [
      [0, 10],
      [0.25, 11],
      [0.5, 12],
      [0.75, 13],
      [0.95, 15],
      [1, 400],
    ].map(([share = 0, value = 0]) => ({ share, value, low: 0, high: 0 }));
    const far = fakeDistribution({ edges: [10, 15, 400], counts: [95, 5], count: 100, ecdf, unit: "ms" });
    const drawing = drawDistribution([{ name: "far", distribution: far }], "Inference", "histogram", FAKE_CHART_THEME);
    const { xAxis } = drawing.option as { xAxis: { name: string; max: number } };
    expect(xAxis.max).toBe(18);
    expect(xAxis.name).toBe("Inference, ms");
    expect(drawing.note).toBe("5 % of the samples lie farther right, up to 400 ms.");
  });

  it("marks the median with its interval", () => {
    const line = findSeries(
      drawDistribution(shown, "Inference", "ecdf", FAKE_CHART_THEME),
      "after",
    ) as LineSeriesOption;
    expect(line.markLine?.data).toEqual([{ xAxis: 2 }]);
    expect(line.markArea?.data).toEqual([[{ xAxis: 1.8 }, { xAxis: 2.2 }]]);
  });

  it("tells two lines apart by more than their colour", () => {
    const drawing = drawDistribution(shown, "Inference", "ecdf", FAKE_CHART_THEME);
    const dashes = listSeries(drawing)
      .filter((one) => one.name)
      .map((one) => JSON.stringify((one as LineSeriesOption).lineStyle?.type));
    expect(new Set(dashes).size).toBe(2);
  });
});

describe("a history", () => {
  it("puts a change between the last result before it and the first after it", () => {
    const dots = findSeries(
      drawHistory(fakeHistory(), "Inference p50", FAKE_CHART_THEME),
      "valid",
    ) as ScatterSeriesOption;
    expect(dots.markLine?.data).toMatchObject([
      { xAxis: 20.5, name: "c1", lineStyle: { color: FAKE_CHART_THEME.bad, type: "solid" } },
    ]);
  });

  it("draws a suspect dotted, a known change grey, and a rejected one not at all", () => {
    const state = (name: "suspect" | "acknowledged" | "rejected") => {
      const [change] = fakeHistory().changes;
      const changes = change === undefined ? [] : [{ ...change, state: name }];
      return (
        findSeries(
          drawHistory(fakeHistory({ changes }), "Inference p50", FAKE_CHART_THEME),
          "valid",
        ) as ScatterSeriesOption
      ).markLine?.data;
    };
    expect(state("suspect")).toMatchObject([{ lineStyle: { type: "dotted" } }]);
    expect(state("acknowledged")).toMatchObject([{ lineStyle: { color: FAKE_CHART_THEME.muted } }]);
    expect(state("rejected")).toEqual([]);
  });

  it("names the experiment behind each dot, so that a click can lead there", () => {
    const dots = findSeries(
      drawHistory(fakeHistory(), "Inference p50", FAKE_CHART_THEME),
      "valid",
    ) as ScatterSeriesOption;
    expect(dots.data?.[3]).toMatchObject({ experimentId: "e3", jobId: "e3-001" });
  });

  it("shows a void result apart and one without the number only in the table", () => {
    const points = [fakePoint(0), fakePoint(1, { grade: "void" }), fakePoint(2, { values: {} })];
    const drawing = drawHistory(fakeHistory({ points, segments: [], changes: [] }), "Inference p50", FAKE_CHART_THEME);
    expect((findSeries(drawing, "void, not judged") as ScatterSeriesOption).data).toHaveLength(1);
    expect((findSeries(drawing, "valid") as ScatterSeriesOption).data).toHaveLength(1);
    expect(drawing.table.rows).toHaveLength(3);
  });

  it("draws each level from its first result to its last", () => {
    const levels = findSeries(
      drawHistory(fakeHistory(), "Inference p50", FAKE_CHART_THEME),
      "level",
    ) as CustomSeriesOption;
    expect(levels.data).toEqual([
      [0.6, 20.4, 10.1, 10, 10.2],
      [20.6, 25.4, 12, 11.8, 12.2],
    ]);
  });

  it("tells what changed around it, and leaves out the commit, which nearly always does", () => {
    const points = [fakePoint(0), fakePoint(1, { facts: { commit: "x", kernel: "6.5" } }), fakePoint(2, { facts: {} })];
    expect(findChangedFacts(points)).toEqual([{ index: 1, facts: ["kernel: 6.1 → 6.5"] }]);
  });
});

describe("a matrix", () => {
  it("is tinted by how much worse a cell is than the best, on a logarithmic scale", () => {
    const shades = buildHeatCells(fakeMatrix()).map((row) => row.map((one) => one.worse));
    expect(shades).toEqual([
      [0, 1],
      [0.5, null],
    ]);
  });

  it("turns the tint round where more is better, and has none where neither is", () => {
    expect(buildHeatCells(fakeMatrix({ better: "higher" }))[0]?.map((one) => one.worse)).toEqual([1, 0]);
    expect(
      buildHeatCells(fakeMatrix({ better: "neither" }))
        .flat()
        .every((one) => one.worse === null),
    ).toBe(true);
  });

  it("joins the front and nothing behind it", () => {
    const line = listSeries(drawPareto(fakeMatrix(), "Inference p50", FAKE_CHART_THEME)).at(-1) as LineSeriesOption;
    expect(line.data).toEqual([[2, 10]]);
  });
});

describe("what a job did over time", () => {
  it("shows the median of each bucket, and failures where there were some", () => {
    const bucket = (at_s: number, failed: number) => ({ at_s, count: 3, failed, low: 1, median: 2, high: 3 });
    const runs = [
      { repetition: 0, is_used: true, excluded: "", begin_s: 0, end_s: 2, buckets: [bucket(0, 0), bucket(1, 2)] },
    ];
    const drawing = drawTimeline(
      { job_id: "j", title: "t", metric: "e2e_ms", unit: "ms", width_s: 1, runs },
      "Inference",
      FAKE_CHART_THEME,
    );
    const line = findSeries(drawing, "run 0") as LineSeriesOption;
    expect(line.data).toEqual([
      [0, 2],
      [1, 2],
    ]);
    expect(line.markPoint?.data).toMatchObject([{ coord: [1, 3], value: 2 }]);
    expect(drawing.table.rows).toEqual([["0", "yes", "6", "2", "1.00 ms", "3.00 ms"]]);
  });

  it("gives each counter a panel of its own and keeps the gaps between runs", () => {
    const counter = { probe: "cpu", counter: "busy", unit: "1", at_s: [0, 1, 2], value: [0.5, null, 0.7] };
    const measured = [{ repetition: 0, begin_s: 0, end_s: 1 }];
    const drawing = drawTelemetry({ job_id: "j", title: "t", series: [counter, counter], measured }, FAKE_CHART_THEME);
    expect(drawing.option.grid).toHaveLength(2);
    expect((listSeries(drawing)[0] as LineSeriesOption).data).toEqual([
      [0, 0.5],
      [1, null],
      [2, 0.7],
    ]);
  });

  it("sets cold beside warm and leaves out what was not measured", () => {
    const run = { repetition: 0, kind: "load" as const, is_used: true, excluded: "", load: 100, first: 20, warm: null };
    const drawing = drawStarts({ job_id: "j", title: "t", unit: "ms", runs: [run], estimates: {} }, FAKE_CHART_THEME);
    expect((findSeries(drawing, "load (cold)") as ScatterSeriesOption).data).toHaveLength(1);
    expect((findSeries(drawing, "warm, median of a run") as ScatterSeriesOption).data).toEqual([]);
  });
});

describe("a sparkline", () => {
  it("breaks where a number is missing and ends at the last that is known", () => {
    const drawn = drawSparkline([1, 2, null, 3, 4, null], 86, 20);
    expect(drawn?.paths).toHaveLength(2);
    expect(drawn?.last).toEqual({ x: 67, y: 3 });
  });

  it("is not drawn of nothing, and runs through the middle where nothing changes", () => {
    expect(drawSparkline([null], 86, 20)).toBeNull();
    expect(drawSparkline([5, 5], 86, 20)?.last.y).toBe(10);
  });
});

describe("jobs together", () => {
  it("draws measured points with their intervals, and void ones hollow", () => {
    const drawing = drawJobPlot(fakeJobPlot(), FAKE_CHART_THEME);
    const line = findSeries(drawing, "depth 0") as LineSeriesOption;
    const { surface, series } = FAKE_CHART_THEME;
    expect(line.data).toMatchObject([
      { itemStyle: { color: surface, borderColor: series[0] } },
      { itemStyle: { color: series[0] } },
    ]);
    const bars = listSeries(drawing).filter((one) => one.type === "custom") as CustomSeriesOption[];
    expect(bars.map((one) => one.data)).toEqual([[[1, 38, 42]]]);
  });

  it("dashes a bound in the colour of its line", () => {
    const bound = findSeries(
      drawJobPlot(fakeJobPlot(), FAKE_CHART_THEME),
      "memory allows, depth 0",
    ) as LineSeriesOption;
    expect(bound.lineStyle).toMatchObject({ type: "dashed", color: FAKE_CHART_THEME.series[0] });
  });
});
