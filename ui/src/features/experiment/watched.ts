// An experiment's own stream in, its jobs and what each is doing just now out, for as long as somebody looks.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import type { Event, ExperimentView, QueuedJob } from "@/api/schema";
import { streamed } from "@/api/sse";

export interface Watched {
  view: ExperimentView | null;
  jobs: ReadonlyMap<string, QueuedJob>;
  doing: ReadonlyMap<string, Event>;
}

const NOTHING: Watched = { view: null, jobs: new Map(), doing: new Map() };
const PAUSE_MS = 1000;
// Many jobs change at once: the page is drawn a few times a second at most.
const DRAW_MS = 120;

interface Snapshot {
  experiment: ExperimentView;
  jobs: QueuedJob[];
}

/** Return what is known after one more event. */
export function after(watched: Watched, event: string, data: string): Watched {
  switch (event) {
    case "snapshot": {
      const { experiment, jobs } = JSON.parse(data) as Snapshot;
      return { view: experiment, jobs: new Map(jobs.map((job) => [job.id, job])), doing: watched.doing };
    }
    case "job": {
      const job = JSON.parse(data) as QueuedJob;
      const before = watched.jobs.get(job.id)?.state;
      return { ...watched, view: moved(watched.view, before, job.state), jobs: new Map(watched.jobs).set(job.id, job) };
    }
    case "progress": {
      const told = JSON.parse(data) as Event;
      return { ...watched, doing: new Map(watched.doing).set(told.job_id, counted(told, watched.doing.get(told.job_id))) };
    }
    case "experiment":
      return { ...watched, view: JSON.parse(data) as ExperimentView };
    default:
      return watched;
  }
}

/** A phase says nothing of how far the job is: what was told of that before still holds. */
function counted(told: Event, before: Event | undefined): Event {
  if (told.kind !== "phase" || told.total || !before || before.kind === "prepare") return told;
  return { ...told, done: before.done, total: before.total };
}

/** A job that moved on is counted where it is now: of the experiment itself the server tells only when its own state changes. */
function moved(view: ExperimentView | null, from: QueuedJob["state"] | undefined, to: QueuedJob["state"]): ExperimentView | null {
  if (view === null || from === undefined || from === to) return view;
  const counts = { ...view.counts, [from]: (view.counts[from] ?? 1) - 1, [to]: (view.counts[to] ?? 0) + 1 };
  return { ...view, counts };
}

export function isOver(view: ExperimentView | null): boolean {
  return view !== null && view.experiment.state !== "running" && view.experiment.state !== "pending";
}

/** `isEnded`: what the page knows of its end; one that is tried again runs again, and is followed anew. */
export function useWatched(experimentId: string, isEnded: boolean): Watched {
  const [watched, setWatched] = useState(NOTHING);
  const client = useQueryClient();
  useEffect(() => {
    const stop = new AbortController();
    let held = NOTHING;
    let timer: ReturnType<typeof setTimeout> | null = null;
    const draw = (): void => {
      timer ??= setTimeout(() => {
        timer = null;
        setWatched(held);
      }, DRAW_MS);
    };
    const follow = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        try {
          for await (const { event, data } of streamed(`/api/v1/experiments/${encodeURIComponent(experimentId)}/events`, stop.signal)) {
            held = after(held, event, data);
            draw();
          }
          if (isOver(held.view)) {
            void client.invalidateQueries({ queryKey: ["experiment", experimentId] });
            return;
          }
        } catch {
          // Cut off, or gone: the page's own question says which.
        }
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    };
    void follow();
    return () => {
      stop.abort();
      if (timer !== null) clearTimeout(timer);
    };
  }, [experimentId, client, isEnded]);
  return watched;
}
