// All jobs as a grid of small squares that holds a thousand, with details of the chosen one.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { memo } from "react";

import type { QueuedJob } from "@/api/schema";
import { api, readBody } from "@/api/client";
import { describeState, StateBadge, stateTone, ToneShape } from "@/components/Badge";
import { Card, Facts } from "@/components/layout";
import { Loading, QueryContent } from "@/components/states";
import { Duration, formatInstant, RelativeTime } from "@/components/time";
import { useAction } from "@/components/toasts";

import { jobQuery } from "./queries";
import type { LiveExperiment } from "./liveExperiment";

const route = getRouteApi("/experiments/$experimentId");

/** Drawn again when a job changes its state, and not at every report of those that run. */
export const JobGrid = memo(function JobGrid({ jobs: jobsById }: Pick<LiveExperiment, "jobs">) {
  const { job: chosen } = route.useSearch();
  const navigate = route.useNavigate();
  const jobs = [...jobsById.values()];
  if (jobs.length === 0) return <Loading what="Loading the jobs" />;
  const choose = (id: string): void => void navigate({ search: (before) => ({ ...before, job: id }), replace: true });
  const shown = jobsById.get(chosen ?? "") ?? jobs[0];
  return (
    <div className="stack wide">
      <Card title={`${jobs.length} ${jobs.length === 1 ? "job" : "jobs"}`}>
        <ul className={jobs.length > 60 ? "grid dense" : "grid"} aria-label="Jobs">
          {jobs.map((job) => (
            <li key={job.id}>
              <button
                type="button"
                className={`cell tone-${stateTone(job.state)}`}
                aria-pressed={job.id === shown?.id}
                title={`${job.title}: ${describeState(job.state)}`}
                onClick={() => choose(job.id)}
              >
                <ToneShape tone={stateTone(job.state)} />
                <span className={jobs.length > 60 ? "unseen" : "title"}>
                  {job.title}
                  <span className="unseen">: {describeState(job.state)}</span>
                </span>
              </button>
            </li>
          ))}
        </ul>
      </Card>
      {shown && <JobDetails job={shown} />}
    </div>
  );
});

function JobDetails({ job }: { job: QueuedJob }) {
  const detail = useQuery(jobQuery(job.experiment_id, job.id));
  const act = useAction();
  const params = { params: { path: { job_id: job.id } } };
  const isOpen = job.state === "waiting" || job.state === "leased";
  const mayRetry = job.state === "failed" || job.state === "partial" || job.state === "cancelled";
  return (
    <Card
      title={job.title}
      actions={
        <>
          {isOpen && (
            <button
              type="button"
              className="button slim"
              onClick={() =>
                void act(() => readBody(api.POST("/api/v1/jobs/{job_id}/cancel", params)), "The job will stop")
              }
            >
              Cancel this job
            </button>
          )}
          {mayRetry && (
            <button
              type="button"
              className="button slim"
              onClick={() =>
                void act(() => readBody(api.POST("/api/v1/jobs/{job_id}/retry", params)), "The job waits again")
              }
            >
              Retry this job
            </button>
          )}
        </>
      }
    >
      <div className="stack">
        <Facts
          of={[
            ["State", <StateBadge key="state" of={job.state} />],
            [
              "Id",
              <span key="id" className="mono">
                {job.id}
              </span>,
            ],
            ...(job.reason ? [["Reason", job.reason] as const] : []),
            ...(job.failure
              ? [["Failure", [job.failure.message, job.failure.hint].filter(Boolean).join("; ")] as const]
              : []),
            ...(job.agent_id ? [["Agent", <AgentLink key="agent" id={job.agent_id} />] as const] : []),
            ...(job.leased_at
              ? [
                  ["Waited", <Duration key="waited" from={job.created_at} to={job.leased_at} />] as const,
                  ["Ran for", <Duration key="for" from={job.leased_at} to={job.ended_at} />] as const,
                ]
              : []),
            ...Object.entries(job.cell).map(([key, value]) => [key, String(value)] as const),
          ]}
        />
        <div className="row">
          <Link from="/experiments/$experimentId" search={(before) => ({ ...before, part: "samples", job: job.id })}>
            Its samples
          </Link>
          <Link from="/experiments/$experimentId" search={(before) => ({ ...before, part: "details", job: job.id })}>
            Its details
          </Link>
          <Link from="/experiments/$experimentId" search={(before) => ({ ...before, part: "logs", job: job.id })}>
            Its log
          </Link>
        </div>
        <QueryContent query={detail}>
          {({ attempts }) =>
            attempts.length === 0 ? null : (
              <div className="scroll" tabIndex={0} role="region" aria-label="Attempts at this job">
                <table>
                  <thead>
                    <tr>
                      <th scope="col">Attempt</th>
                      <th scope="col">Outcome</th>
                      <th scope="col">Agent</th>
                      <th scope="col">Started</th>
                      <th scope="col">Why</th>
                    </tr>
                  </thead>
                  <tbody>
                    {attempts.map((one) => (
                      <tr key={one.number}>
                        <td>{one.number}</td>
                        <td>
                          <StateBadge of={one.state} />
                        </td>
                        <td>
                          <AgentLink id={one.agent_id} />
                        </td>
                        <td title={formatInstant(one.leased_at)}>
                          <RelativeTime at={one.leased_at} />
                        </td>
                        <td>{one.reason}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )
          }
        </QueryContent>
      </div>
    </Card>
  );
}

function AgentLink({ id }: { id: string }) {
  return (
    <Link to="/fleet/$agentId" params={{ agentId: id }} className="mono">
      {id}
    </Link>
  );
}
