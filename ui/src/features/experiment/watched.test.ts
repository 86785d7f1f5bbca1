import { describe, expect, it } from "vitest";

import { after, isOver, type Watched } from "./watched";

const NOTHING: Watched = { view: null, jobs: new Map(), doing: new Map() };
const SNAPSHOT = JSON.stringify({
  experiment: { experiment: { id: "x1", state: "running" }, counts: { waiting: 1 } },
  jobs: [{ id: "x1-001", state: "waiting" }],
});

describe("a watched experiment", () => {
  it("begins with a snapshot and follows its jobs", () => {
    const begun = after(NOTHING, "snapshot", SNAPSHOT);
    expect(begun.jobs.get("x1-001")?.state).toBe("waiting");
    const moved = after(begun, "job", JSON.stringify({ id: "x1-001", state: "leased" }));
    expect(moved.jobs.get("x1-001")?.state).toBe("leased");
    expect(begun.jobs.get("x1-001")?.state).toBe("waiting");
  });

  it("counts a job where it is now, and not where it was", () => {
    const moved = after(after(NOTHING, "snapshot", SNAPSHOT), "job", JSON.stringify({ id: "x1-001", state: "leased" }));
    expect(moved.view?.counts).toEqual({ waiting: 0, leased: 1 });
  });

  it("knows how far a job is through all the phases of a repetition", () => {
    const told = (event: object) => JSON.stringify({ job_id: "x1-001", ...event });
    const begun = after(NOTHING, "progress", told({ kind: "repetition", done: 3, total: 200 }));
    const warm = after(begun, "progress", told({ kind: "phase", phase: "warmup" }));
    expect(warm.doing.get("x1-001")).toMatchObject({ phase: "warmup", done: 3, total: 200 });
    const fetched = after(NOTHING, "progress", told({ kind: "prepare", done: 5, total: 10 }));
    expect(after(fetched, "progress", told({ kind: "phase", phase: "load" })).doing.get("x1-001")?.total).toBeUndefined();
  });

  it("is over when its state says so, and not before it is known", () => {
    expect(isOver(null)).toBe(false);
    const ended = after(NOTHING, "experiment", JSON.stringify({ experiment: { id: "x1", state: "complete" }, counts: {} }));
    expect(isOver(ended.view)).toBe(true);
  });

  it("passes over what only a newer server tells", () => {
    expect(after(NOTHING, "surprise", "{}")).toBe(NOTHING);
  });
});
