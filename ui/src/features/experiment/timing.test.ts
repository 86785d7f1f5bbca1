import { describe, expect, it } from "vitest";

import type { Event, QueuedJob } from "@/api/schema";

import { fakeJob } from "../../../tests/fakes/resources";

import { estimateJobLeft, estimateLeft, measureTimes } from "./timing";

const BEGIN = Date.parse("2026-11-15T03:00:00Z");
const at = (second: number): string => new Date(BEGIN + second * 1000).toISOString();
const ms = (second: number): number => BEGIN + second * 1000;

function jobBetween(leased: number | null, ended: number | null, over: Partial<QueuedJob> = {}): QueuedJob {
  const state = leased === null ? "waiting" : ended === null ? "leased" : "complete";
  return fakeJob({
    id: `j${leased}-${ended}`,
    state,
    leased_at: leased === null ? null : at(leased),
    ended_at: ended === null ? null : at(ended),
    ...over,
  });
}

function eventOf(done: number, total: number, kind: Event["kind"] = "repetition"): Event {
  return { kind, job_id: "j", done, total, phase: "", state: "", message: "" };
}

describe("the times of an experiment", () => {
  it("tell how long it ran and how long nothing of it ran", () => {
    const ended = { created_at: at(0), ended_at: at(194) };
    expect(measureTimes(ended, [jobBetween(180, 194)], ms(500))).toEqual({ ranS: 14, waitedS: 180 });
  });

  it("count the time of jobs that ran side by side once, and pauses between them as waiting", () => {
    const ended = { created_at: at(0), ended_at: at(50) };
    const jobs = [jobBetween(0, 20), jobBetween(10, 30), jobBetween(40, 50)];
    expect(measureTimes(ended, jobs, ms(500))).toEqual({ ranS: 40, waitedS: 10 });
  });

  it("go on while a job runs, and do not while one waits again that was lost", () => {
    const open = { created_at: at(0), ended_at: null };
    expect(measureTimes(open, [jobBetween(10, null)], ms(25))).toEqual({ ranS: 15, waitedS: 10 });
    const again = jobBetween(10, null, { state: "waiting" });
    expect(measureTimes(open, [again], ms(25))).toEqual({ ranS: 0, waitedS: 25 });
  });

  it("are not told before the jobs are known", () => {
    expect(measureTimes({ created_at: at(0) }, [], ms(25))).toBeNull();
  });
});

describe("the time that is left", () => {
  it("of a job follows from how far it is", () => {
    expect(estimateJobLeft(jobBetween(0, null), eventOf(1, 4), ms(10))).toBeCloseTo(30);
  });

  it("is not told at the very beginning, nor while something is fetched", () => {
    expect(estimateJobLeft(jobBetween(0, null), eventOf(1, 20), ms(10))).toBeNull();
    expect(estimateJobLeft(jobBetween(0, null), eventOf(1, 2), ms(1))).toBeNull();
    expect(estimateJobLeft(jobBetween(0, null), eventOf(50, 100, "prepare"), ms(10))).toBeNull();
  });

  it("of an experiment counts those that wait as long as those that ended, shared by those that run", () => {
    const jobs = [
      jobBetween(0, 20),
      jobBetween(20, null, { id: "a" }),
      jobBetween(20, null, { id: "b" }),
      jobBetween(null, null),
      jobBetween(null, null, { id: "w" }),
    ];
    // Two that run have 10 s left each, two that wait take 20 s each, and two run at a time.
    expect(estimateLeft(jobs, new Map(), ms(30))).toBeCloseTo(30);
  });

  it("is not told where nothing runs, or nothing is known of how long one takes", () => {
    expect(estimateLeft([jobBetween(0, 20), jobBetween(null, null)], new Map(), ms(30))).toBeNull();
    expect(estimateLeft([jobBetween(0, null)], new Map(), ms(30))).toBeNull();
  });
});
