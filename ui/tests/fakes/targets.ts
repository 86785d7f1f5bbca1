// Fake targets and placements as the server would send them; each test overrides what it is about.
import type { PlacementView, ServedTarget } from "../../src/api/schema";

const AT = "2026-11-15T03:00:00Z";

export function fakeTarget(over: Partial<ServedTarget> = {}): ServedTarget {
  return {
    name: "cluster",
    kind: "slurm",
    slots: 20,
    agent_id: "cluster-1",
    agent_state: "busy",
    placed: { queued: 2, running: 1 },
    ...over,
  };
}

export function fakePlacement(over: Partial<PlacementView["note"]> = {}): PlacementView {
  return {
    number: 1,
    job_id: "x1-001",
    experiment_id: "x1",
    agent_id: "cluster-1",
    attempt: 1,
    note: {
      target: "cluster",
      kind: "slurm",
      key: "prony-x1-001-1-0",
      phase: "queued",
      state: "PENDING",
      reason: "no suitable node is free yet (Resources)",
      native_id: "4711",
      nodes: [],
      submitted_at: AT,
      ...over,
    },
  };
}
