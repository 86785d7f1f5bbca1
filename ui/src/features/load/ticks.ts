// Collects the ticks of running loads from progress events, starting again with each run.
import type { Tick } from "@/charts/options/live";

interface LiveLoad {
  elapsed_s: number;
  sent: number;
  done: number;
  failed: number;
  in_flight: number;
  rate_per_s: number;
  p50_ms?: number | null;
  p99_ms?: number | null;
}

export interface ProgressEvent {
  kind: string;
  job_id: string;
  done?: number;
  total?: number;
  live?: LiveLoad | null;
}

export interface RunningLoad {
  run: number;
  runs: number;
  ticks: readonly Tick[];
}

const MOST = 600;

/** Add what was told to what is known, by job. */
export function applyProgress(
  known: ReadonlyMap<string, RunningLoad>,
  told: ProgressEvent,
): ReadonlyMap<string, RunningLoad> {
  const before = known.get(told.job_id) ?? { run: 0, runs: 0, ticks: [] };
  if (told.kind === "finished") return removeJob(known, told.job_id);
  if (told.kind === "repetition")
    return new Map(known).set(told.job_id, {
      ...before,
      run: told.done ?? before.run,
      runs: told.total ?? before.runs,
    });
  if (told.kind !== "load" || !told.live) return known;
  const { elapsed_s, rate_per_s, in_flight, failed, p50_ms = null, p99_ms = null } = told.live;
  const tick = { at_s: elapsed_s, rate_per_s, in_flight, failed, p50_ms, p99_ms };
  const last = before.ticks.at(-1);
  const kept = last !== undefined && last.at_s > elapsed_s ? [] : before.ticks;
  return new Map(known).set(told.job_id, { ...before, ticks: [...kept, tick].slice(-MOST) });
}

function removeJob(known: ReadonlyMap<string, RunningLoad>, jobId: string): ReadonlyMap<string, RunningLoad> {
  const left = new Map(known);
  left.delete(jobId);
  return left;
}
