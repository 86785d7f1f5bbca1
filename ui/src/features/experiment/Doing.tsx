// What each running job is doing just now, as its runner tells; and where none runs, what they wait for.
import { useQuery } from "@tanstack/react-query";

import { queueQuery } from "@/api/fleet";
import type { Event, QueuedJob } from "@/api/schema";
import { plain } from "@/components/number";

import type { Watched } from "./watched";

const MOST = 6;

export function Doing({ watched }: { watched: Watched }) {
  const running = [...watched.jobs.values()].filter((job) => job.state === "leased");
  const waiting = [...watched.jobs.values()].find((job) => job.state === "waiting");
  if (running.length === 0 && waiting) return <Waiting experimentId={waiting.experiment_id} />;
  return (
    <ul className="doing">
      {running.slice(0, MOST).map((job) => (
        <li key={job.id}>
          <One job={job} told={watched.doing.get(job.id)} />
        </li>
      ))}
      {running.length > MOST && <li className="muted">and {running.length - MOST} more</li>}
    </ul>
  );
}

/** Why is asked of the queue: it changes with the agents, and of those an experiment's own stream tells nothing. */
function Waiting({ experimentId }: { experimentId: string }) {
  const queue = useQuery(queueQuery());
  const why = queue.data?.lots.find(({ lot, waiting }) => lot.experiment_id === experimentId && waiting > 0)?.reason;
  return <p className="muted">{why ? `Waiting: ${why}` : "Waiting for its turn"}</p>;
}

function One({ job, told }: { job: QueuedJob; told: Event | undefined }) {
  const share = shareOf(told);
  return (
    <>
      <span className="title">{job.title}</span>
      <span className="muted">{told ? wordsOf(told) : "starting"}</span>
      {share !== null && (
        <span className="bar" role="progressbar" aria-label={`progress of ${job.title}`} aria-valuenow={Math.round(100 * share)} aria-valuemin={0} aria-valuemax={100}>
          <i className="info" style={{ width: `${100 * share}%` }} />
        </span>
      )}
    </>
  );
}

/** An event that travels leaves out what is nothing: no count is zero. */
function shareOf(told: Partial<Event> | undefined): number | null {
  const { done = 0, total = 0 } = told ?? {};
  return total > 0 ? Math.min(1, done / total) : null;
}

function wordsOf(told: Partial<Event>): string {
  if (told.live) {
    const { rate_per_s, p50_ms, p99_ms, failed } = told.live;
    const parts = [plain(rate_per_s, "1/s")];
    if (p50_ms != null) parts.push(`p50 ${plain(p50_ms, "ms")}`);
    if (p99_ms != null) parts.push(`p99 ${plain(p99_ms, "ms")}`);
    if (failed > 0) parts.push(`${failed} failed`);
    return parts.join(" · ");
  }
  const { kind = "", phase = "", message = "", done = 0, total = 0 } = told;
  // While a model is fetched the count is one of bytes.
  if (kind === "prepare") return `${message || "preparing"}${total > 0 ? ` · ${plain(done, "B")} of ${plain(total, "B")}` : ""}`;
  return [`${phase || kind}${total > 0 ? `${phase ? "," : ""} ${done} of ${total}` : ""}`, message].filter(Boolean).join(" · ");
}
