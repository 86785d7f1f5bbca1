import { expect, it } from "vitest";

import { applyProgress, type RunningLoad } from "./ticks";

const LIVE = { sent: 1, done: 1, failed: 0, in_flight: 2, rate_per_s: 9 };

it("gathers the seconds of a run, begins anew with the next, and ends with the job", () => {
  let known: ReadonlyMap<string, RunningLoad> = new Map();
  known = applyProgress(known, { kind: "load", job_id: "j", live: { ...LIVE, elapsed_s: 1 } });
  known = applyProgress(known, { kind: "load", job_id: "j", live: { ...LIVE, elapsed_s: 2, p50_ms: 3 } });
  expect(known.get("j")?.ticks.map((one) => [one.at_s, one.p50_ms])).toEqual([
    [1, null],
    [2, 3],
  ]);
  known = applyProgress(known, { kind: "repetition", job_id: "j", done: 1, total: 3 });
  known = applyProgress(known, { kind: "load", job_id: "j", live: { ...LIVE, elapsed_s: 0.5 } });
  expect(known.get("j")).toMatchObject({ run: 1, runs: 3, ticks: [{ at_s: 0.5 }] });
  expect(applyProgress(known, { kind: "phase", job_id: "j" })).toBe(known);
  expect(applyProgress(known, { kind: "finished", job_id: "j" }).size).toBe(0);
});
