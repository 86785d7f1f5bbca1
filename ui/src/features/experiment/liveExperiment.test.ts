import { describe, expect, it } from "vitest";

import { applyEvent, isOver, type LiveExperiment } from "./liveExperiment";

const NOTHING: LiveExperiment = { view: null, jobs: new Map(), progress: new Map() };
const SNAPSHOT = JSON.stringify({
  experiment: { experiment: { id: "x1", state: "running" }, counts: { waiting: 1 } },
  jobs: [{ id: "x1-001", state: "waiting" }],
});

describe("a live experiment", () => {
  it("begins with a snapshot and follows its jobs", () => {
    const begun = applyEvent(NOTHING, "snapshot", SNAPSHOT);
    expect(begun.jobs.get("x1-001")?.state).toBe("waiting");
    const moved = applyEvent(begun, "job", JSON.stringify({ id: "x1-001", state: "leased" }));
    expect(moved.jobs.get("x1-001")?.state).toBe("leased");
    expect(begun.jobs.get("x1-001")?.state).toBe("waiting");
  });

  it("counts a job where it is now, and not where it was", () => {
    const moved = applyEvent(
      applyEvent(NOTHING, "snapshot", SNAPSHOT),
      "job",
      JSON.stringify({ id: "x1-001", state: "leased" }),
    );
    expect(moved.view?.counts).toEqual({ waiting: 0, leased: 1 });
  });

  it("knows how far a job is through all the phases of a repetition", () => {
    const encode = (event: object) => JSON.stringify({ job_id: "x1-001", ...event });
    const begun = applyEvent(NOTHING, "progress", encode({ kind: "repetition", done: 3, total: 200 }));
    const warm = applyEvent(begun, "progress", encode({ kind: "phase", phase: "warmup" }));
    expect(warm.progress.get("x1-001")).toMatchObject({ phase: "warmup", done: 3, total: 200 });
    const fetched = applyEvent(NOTHING, "progress", encode({ kind: "prepare", done: 5, total: 10 }));
    expect(
      applyEvent(fetched, "progress", encode({ kind: "phase", phase: "load" })).progress.get("x1-001")?.total,
    ).toBeUndefined();
  });

  it("is over when its state says so, and not before it is known", () => {
    expect(isOver(null)).toBe(false);
    const ended = applyEvent(
      NOTHING,
      "experiment",
      JSON.stringify({ experiment: { id: "x1", state: "complete" }, counts: {} }),
    );
    expect(isOver(ended.view)).toBe(true);
  });

  it("passes over what only a newer server tells", () => {
    expect(applyEvent(NOTHING, "surprise", "{}")).toBe(NOTHING);
  });
});
