// The progress of each running job, or why jobs are waiting.
import { useQuery } from "@tanstack/react-query";

import { queueQuery } from "@/api/fleet";
import type { Event, QueuedJob } from "@/api/schema";
import { formatValue } from "@/components/number";
import { formatDuration, useNow } from "@/components/time";

import type { LiveExperiment } from "./liveExperiment";
import { estimateJobLeft, estimateLeft, progressShare } from "./timing";

const MOST = 6;

export function RunningJobs({ live }: { live: LiveExperiment }) {
  const running = [...live.jobs.values()].filter((job) => job.state === "leased");
  const waiting = [...live.jobs.values()].find((job) => job.state === "waiting");
  if (running.length === 0 && waiting) return <WaitingReason experimentId={waiting.experiment_id} />;
  return (
    <ul className="doing">
      {running.slice(0, MOST).map((job) => (
        <li key={job.id}>
          <RunningJob job={job} event={live.progress.get(job.id)} />
        </li>
      ))}
      {running.length > MOST && <li className="muted">and {running.length - MOST} more</li>}
    </ul>
  );
}

/** How long all of it may still take, where that can be said. */
export function TimeLeft({ live }: { live: LiveExperiment }) {
  const left = estimateLeft(live.jobs.values(), live.progress, useNow());
  if (left === null) return null;
  return <span title="If the jobs that wait take as long as those before them"> · {describeLeft(left)}</span>;
}

function describeLeft(seconds: number): string {
  return seconds < 5 ? "nearly done" : `about ${formatDuration(roundUp(seconds))} left`;
}

/** No more digits than such a guess is good for. */
function roundUp(seconds: number): number {
  const step = seconds < 60 ? 5 : seconds < 600 ? 30 : 60;
  return Math.ceil(seconds / step) * step;
}

/** Why is asked of the queue: it changes with the agents, and of those an experiment's own stream tells nothing. */
function WaitingReason({ experimentId }: { experimentId: string }) {
  const queue = useQuery(queueQuery());
  const why = queue.data?.lots.find(({ lot, waiting }) => lot.experiment_id === experimentId && waiting > 0)?.reason;
  return <p className="muted">{why ? `Waiting: ${why}` : "Waiting for its turn"}</p>;
}

function RunningJob({ job, event }: { job: QueuedJob; event: Event | undefined }) {
  const share = progressShare(event);
  const left = estimateJobLeft(job, event, useNow());
  return (
    <>
      <span className="title">{job.title}</span>
      <span className="muted">
        {event ? describeEvent(event) : "starting"}
        {left !== null && ` · ${describeLeft(left)}`}
      </span>
      {share !== null && (
        <span
          className="bar"
          role="progressbar"
          aria-label={`progress of ${job.title}`}
          aria-valuenow={Math.round(100 * share)}
          aria-valuemin={0}
          aria-valuemax={100}
        >
          <i className="info" style={{ width: `${100 * share}%` }} />
        </span>
      )}
    </>
  );
}

function describeLive(live: NonNullable<Event["live"]>): string {
  const { rate_per_s, p50_ms, p99_ms, failed, done, tokens_per_s } = live;
  if (tokens_per_s != null) return `${formatValue(tokens_per_s)} tokens/s · ${done} done`;
  const parts = [formatValue(rate_per_s, "1/s")];
  if (p50_ms != null) parts.push(`p50 ${formatValue(p50_ms, "ms")}`);
  if (p99_ms != null) parts.push(`p99 ${formatValue(p99_ms, "ms")}`);
  if (failed > 0) parts.push(`${failed} failed`);
  return parts.join(" · ");
}

function describeEvent(event: Partial<Event>): string {
  if (event.live) return describeLive(event.live);
  const { kind = "", phase = "", message = "", done = 0, total = 0 } = event;
  // The runner is done; until the result is with the server the job still counts as running.
  if (kind === "finished") return `${event.state === "complete" ? "measured" : "ended"}, the agent sends the result`;
  // While something is fetched the count is one of bytes.
  if (kind === "prepare")
    return `${message || "preparing"}${total > 0 ? ` · ${formatValue(done, "B")} of ${formatValue(total, "B")}` : ""}`;
  return [`${phase || kind}${total > 0 ? `${phase ? "," : ""} ${done} of ${total}` : ""}`, message]
    .filter(Boolean)
    .join(" · ");
}
