// How long an experiment ran and how long it waited, and how long it may still take.
import type { Event, QueuedJob } from "@/api/schema";

export interface Times {
  ranS: number;
  waitedS: number;
}

type Span = readonly [begin: number, end: number];

/** Below this share of a job nothing is said of its end: the first runs are the slow ones. */
const LEAST_SHARE = 0.1;
const LEAST_ELAPSED_S = 3;

/** Return how long any job ran and how long none did, from the submission on; null where the jobs are not known. */
export function measureTimes(
  { created_at, ended_at }: { created_at: string; ended_at?: string | null | undefined },
  jobs: Iterable<QueuedJob>,
  nowMs: number,
): Times | null {
  const known = [...jobs];
  if (known.length === 0) return null;
  const begin = Date.parse(created_at);
  const end = Math.max(ended_at ? Date.parse(ended_at) : nowMs, begin);
  const spans = known.flatMap((job): Span[] => {
    const span = spanOf(job, end);
    return span ? [[Math.max(span[0], begin), Math.min(span[1], end)]] : [];
  });
  const ranS = lengthOf(spans) / 1000;
  return { ranS, waitedS: (end - begin) / 1000 - ranS };
}

/** A job that waits again keeps when it was lent: that time was lost, and does not go on. */
function spanOf({ state, leased_at, ended_at }: QueuedJob, otherwise: number): Span | null {
  if (!leased_at || (state !== "leased" && !ended_at)) return null;
  return [Date.parse(leased_at), ended_at ? Date.parse(ended_at) : otherwise];
}

/** Return how much time the spans cover together. */
function lengthOf(spans: readonly Span[]): number {
  let covered = 0;
  let reached = -Infinity;
  for (const [begin, end] of [...spans].sort((a, b) => a[0] - b[0])) {
    covered += Math.max(0, end - Math.max(begin, reached));
    reached = Math.max(reached, end);
  }
  return covered;
}

/** Return how far a job is, from 0 to 1; an event that travels leaves out what is nothing. */
export function progressShare(event: Partial<Event> | undefined): number | null {
  const { done = 0, total = 0 } = event ?? {};
  return total > 0 ? Math.min(1, done / total) : null;
}

/** Return the seconds that a running job may still take, if it goes on as it did; null where nobody can say. */
export function estimateJobLeft(job: QueuedJob, event: Partial<Event> | undefined, nowMs: number): number | null {
  const share = progressShare(event);
  // While something is fetched the count is one of bytes, and says nothing of the runs.
  if (!job.leased_at || share === null || share < LEAST_SHARE || event?.kind === "prepare") return null;
  const elapsedS = (nowMs - Date.parse(job.leased_at)) / 1000;
  return elapsedS < LEAST_ELAPSED_S ? null : (elapsedS * (1 - share)) / share;
}

/** Return the seconds until all jobs may have ended: those that wait take as long as those that ended did. */
export function estimateLeft(
  jobs: Iterable<QueuedJob>,
  progress: ReadonlyMap<string, Event>,
  nowMs: number,
): number | null {
  const known = [...jobs];
  const running = known.filter((job) => job.state === "leased");
  const waiting = known.filter((job) => job.state === "waiting").length;
  const usualS = mean(known.flatMap((job) => runTimeOf(job, progress.get(job.id), nowMs)));
  if (running.length === 0 || usualS === null) return null;
  const left = running.map((job) => {
    const elapsedS = job.leased_at ? (nowMs - Date.parse(job.leased_at)) / 1000 : 0;
    return estimateJobLeft(job, progress.get(job.id), nowMs) ?? Math.max(usualS - elapsedS, 0);
  });
  return (left.reduce((sum, one) => sum + one, 0) + waiting * usualS) / running.length;
}

/** Return how long a job ran, or will have run where that can be said of one that runs. */
function runTimeOf(job: QueuedJob, event: Partial<Event> | undefined, nowMs: number): number[] {
  const span = spanOf(job, nowMs);
  if (!span) return [];
  if (job.state !== "leased") return job.state === "cancelled" ? [] : [(span[1] - span[0]) / 1000];
  const left = estimateJobLeft(job, event, nowMs);
  return left === null ? [] : [(span[1] - span[0]) / 1000 + left];
}

function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, one) => sum + one, 0) / values.length;
}
