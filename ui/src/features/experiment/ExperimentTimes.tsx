// How long an experiment ran and how long it waited, in one line.
import type { Experiment, QueuedJob } from "@/api/schema";
import { Duration, formatDuration, useNow } from "@/components/time";

import { measureTimes } from "./timing";

export function ExperimentTimes({ experiment, jobs }: { experiment: Experiment; jobs: readonly QueuedJob[] }) {
  const times = measureTimes(experiment, jobs, useNow());
  const isEnded = experiment.ended_at != null;
  if (times === null)
    return (
      <span>
        {isEnded ? "took " : "for "}
        <Duration from={experiment.created_at} to={experiment.ended_at} />
      </span>
    );
  const ran = times.ranS > 0 ? `ran ${formatDuration(times.ranS)}` : isEnded ? "never ran" : "has not run yet";
  return (
    <span title="The time in which any of its jobs ran, and the time in which none did">
      {ran}, waited {formatDuration(times.waitedS)}
    </span>
  );
}
