// Follows an experiment's event stream and keeps its jobs and their progress up to date.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { pauseAfter, wait } from "@/api/backOff";
import type { Event, ExperimentView, QueuedJob } from "@/api/schema";
import { streamEvents } from "@/api/sse";

export interface LiveExperiment {
  view: ExperimentView | null;
  jobs: ReadonlyMap<string, QueuedJob>;
  progress: ReadonlyMap<string, Event>;
}

const NOTHING: LiveExperiment = { view: null, jobs: new Map(), progress: new Map() };
// Many jobs report at once: the page is drawn twice a second at most.
const DRAW_MS = 500;

interface Snapshot {
  experiment: ExperimentView;
  jobs: QueuedJob[];
}

/** Return what is known after one more event. */
export function applyEvent(live: LiveExperiment, event: string, data: string): LiveExperiment {
  switch (event) {
    case "snapshot": {
      const { experiment, jobs } = JSON.parse(data) as Snapshot;
      return { view: experiment, jobs: new Map(jobs.map((job) => [job.id, job])), progress: live.progress };
    }
    case "job": {
      const job = JSON.parse(data) as QueuedJob;
      const before = live.jobs.get(job.id)?.state;
      return { ...live, view: moveCount(live.view, before, job.state), jobs: new Map(live.jobs).set(job.id, job) };
    }
    case "progress": {
      const progress = JSON.parse(data) as Event;
      return {
        ...live,
        progress: new Map(live.progress).set(
          progress.job_id,
          keepProgress(progress, live.progress.get(progress.job_id)),
        ),
      };
    }
    case "experiment":
      return { ...live, view: JSON.parse(data) as ExperimentView };
    default:
      return live;
  }
}

/** A phase says nothing of how far the job is: what was told of that before still holds. */
function keepProgress(progress: Event, before: Event | undefined): Event {
  if (progress.kind !== "phase" || progress.total || !before || before.kind === "prepare") return progress;
  return { ...progress, done: before.done, total: before.total };
}

/** A job that moved on is counted where it is now: of the experiment itself the server tells only when its own state changes. */
function moveCount(
  view: ExperimentView | null,
  from: QueuedJob["state"] | undefined,
  to: QueuedJob["state"],
): ExperimentView | null {
  if (view === null || from === undefined || from === to) return view;
  const counts = { ...view.counts, [from]: (view.counts[from] ?? 1) - 1, [to]: (view.counts[to] ?? 0) + 1 };
  return { ...view, counts };
}

export function isOver(view: ExperimentView | null): boolean {
  return view !== null && view.experiment.state !== "running" && view.experiment.state !== "pending";
}

/** `isEnded`: what the page knows of its end; one that is tried again runs again, and is followed anew. */
export function useLiveExperiment(experimentId: string, isEnded: boolean): LiveExperiment {
  const [live, setLive] = useState(NOTHING);
  const client = useQueryClient();
  useEffect(() => {
    const stop = new AbortController();
    let held = NOTHING;
    let timer: ReturnType<typeof setTimeout> | null = null;
    let drawnAt = 0;
    const scheduleDraw = (): void => {
      timer ??= setTimeout(
        () => {
          timer = null;
          drawnAt = Date.now();
          setLive(held);
        },
        Math.max(0, DRAW_MS - (Date.now() - drawnAt)),
      );
    };
    const followStream = async (): Promise<void> => {
      for (let failures = 0; !stop.signal.aborted; failures++) {
        try {
          for await (const { event, data } of streamEvents(
            `/api/v1/experiments/${encodeURIComponent(experimentId)}/events`,
            stop.signal,
          )) {
            failures = 0;
            held = applyEvent(held, event, data);
            scheduleDraw();
          }
          if (isOver(held.view)) {
            void client.invalidateQueries({ queryKey: ["experiment", experimentId] });
            return;
          }
        } catch {
          // Cut off, or gone: the page's own question says which.
        }
        await wait(pauseAfter(failures), stop.signal);
      }
    };
    void followStream();
    return () => {
      stop.abort();
      if (timer !== null) clearTimeout(timer);
    };
  }, [experimentId, client, isEnded]);
  return live;
}
