import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { fakeCurve } from "../../../tests/fakes/analysis";
import { fakeExperiment } from "../../../tests/fakes/resources";
import { fakeEntry, fakeJobPlot, fakeResults } from "../../../tests/fakes/results";
import { showPart } from "../../../tests/visit";

import { Answer, choosePictures } from "./Answer";

describe("the answer", () => {
  it("has its sentence above a bar for every job that has the number", async () => {
    await showPart(<Answer data={fakeResults({ answers: ["a is the fastest."] })} />);
    expect(screen.getByText("a is the fastest.")).toBeDefined();
    expect(screen.getAllByRole("listitem")).toHaveLength(2);
  });

  it("has no bars for one job alone", async () => {
    await showPart(<Answer data={fakeResults({ answers: ["a takes 4 ms."], entries: [fakeEntry("x1-001")] })} />);
    expect(screen.getByText("a takes 4 ms.")).toBeDefined();
    expect(screen.queryByRole("figure")).toBeNull();
  });

  it("draws the curve of a load, with the way to its knee", async () => {
    const sweep = { experiments: ["x1"], slo: {}, gain_share: 0.1, curves: [fakeCurve()] };
    await showPart(<Answer data={fakeResults({ answers: ["The knee is at 8 users."], sweep })} />);
    expect(screen.getByRole("img", { name: /Throughput and latency against load/ })).toBeDefined();
    expect(screen.getByRole("link", { name: "Knee, limits and bottleneck" })).toBeDefined();
    expect(screen.queryByRole("list")).toBeNull();
  });

  it("draws decode and prefill over batch side by side, and leaves what lies along other settings for below", () => {
    const plots = [
      fakeJobPlot({ title: "Decode over batch", x_title: "sequences" }),
      fakeJobPlot({ title: "Prefill over batch", x_title: "sequences" }),
      fakeJobPlot({ title: "Decode over depth", x_title: "tokens" }),
    ];
    const chosen = choosePictures(fakeResults({ plots }));
    expect(chosen.plots.map((one) => one.title)).toEqual(["Decode over batch", "Prefill over batch"]);
    expect(chosen.otherPlots.map((one) => one.title)).toEqual(["Decode over depth"]);
  });

  it("says that there is none above the bars of void results", async () => {
    const entries = ["x1-001", "x1-002"].map((id) => fakeEntry(id, { verdict: { grade: "void", reasons: [] } }));
    await showPart(<Answer data={fakeResults({ answers: [], entries })} />);
    expect(screen.getByText("No answer: every result is void.")).toBeDefined();
    expect(screen.getAllByRole("listitem")).toHaveLength(2);
  });

  it("says so of what there is so far while the experiment runs", async () => {
    const experiment = fakeExperiment({ ended_at: null });
    const entries = ["x1-001", "x1-002"].map((id) => fakeEntry(id, { verdict: { grade: "void", reasons: [] } }));
    await showPart(<Answer data={fakeResults({ answers: [], entries, experiment })} />);
    expect(screen.getByText("No answer yet: every result so far is void.")).toBeDefined();
  });

  it("writes the headline of each job large where no two jobs have the same", async () => {
    const first = fakeResults().columns.find((one) => one.is_headline);
    const other = {
      key: "gemm",
      label: "Matrix product",
      unit: "TFLOP/s",
      better: "higher",
      format: "number",
    } as const;
    const estimate = { value: 2, unit: "TFLOP/s", count: 5, level: "run", method: "median", low: 1, high: 3 } as const;
    const entries = [fakeEntry("x1-001"), fakeEntry("x1-002", { estimates: { gemm: estimate } })];
    const columns = [...(first ? [first] : []), { ...other, is_headline: true }];
    await showPart(<Answer data={fakeResults({ answers: ["Two parts."], entries, columns })} />);
    const cards = within(screen.getByRole("list", { name: "Headline numbers" })).getAllByRole("listitem");
    expect(cards).toHaveLength(2);
    expect(cards[1]?.textContent).toContain("Matrix product");
    expect(cards[1]?.textContent).toContain("[1.0, 3.0]");
  });

  it("is left out where there is neither a sentence nor a number", async () => {
    await showPart(<Answer data={fakeResults({ answers: [], entries: [], columns: [] })} />);
    expect(screen.queryByLabelText("Answer")).toBeNull();
  });
});
