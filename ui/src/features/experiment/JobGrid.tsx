// Every job as one small square, and the chosen one in full; a thousand fit on a page.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";

import type { QueuedJob } from "@/api/schema";
import { api, got } from "@/api/client";
import { Shape, State, toneOf } from "@/components/Badge";
import { Card, Facts } from "@/components/layout";
import { Loading, Shown } from "@/components/states";
import { Ago, exactly, Lasted } from "@/components/time";
import { useAct } from "@/components/toasts";

import { jobQuery } from "./queries";
import type { Watched } from "./watched";

const route = getRouteApi("/experiments/$experimentId");

export function JobGrid({ watched }: { watched: Watched }) {
  const { job: chosen } = route.useSearch();
  const navigate = route.useNavigate();
  const jobs = [...watched.jobs.values()];
  if (jobs.length === 0) return <Loading what="Asking for the jobs" />;
  const choose = (id: string): void => void navigate({ search: (before) => ({ ...before, job: id }), replace: true });
  const shown = watched.jobs.get(chosen ?? "") ?? jobs[0];
  return (
    <div className="stack wide">
      <Card title={`${jobs.length} ${jobs.length === 1 ? "job" : "jobs"}`}>
        <ul className={jobs.length > 60 ? "grid dense" : "grid"} aria-label="Jobs">
          {jobs.map((job) => (
            <li key={job.id}>
              <button
                type="button"
                className={`cell tone-${toneOf(job.state)}`}
                aria-pressed={job.id === shown?.id}
                title={`${job.title}: ${job.state}`}
                onClick={() => choose(job.id)}
              >
                <Shape tone={toneOf(job.state)} />
                <span className={jobs.length > 60 ? "unseen" : "title"}>
                  {job.title}
                  <span className="unseen">: {job.state}</span>
                </span>
              </button>
            </li>
          ))}
        </ul>
      </Card>
      {shown && <OneJob job={shown} />}
    </div>
  );
}

function OneJob({ job }: { job: QueuedJob }) {
  const detail = useQuery(jobQuery(job.experiment_id, job.id));
  const act = useAct();
  const asked = { params: { path: { job_id: job.id } } };
  const isOpen = job.state === "waiting" || job.state === "leased";
  const mayRetry = job.state === "failed" || job.state === "partial" || job.state === "cancelled";
  return (
    <Card
      title={job.title}
      actions={
        <>
          {isOpen && (
            <button type="button" className="button slim" onClick={() => void act(() => got(api.POST("/api/v1/jobs/{job_id}/cancel", asked)), "The job will stop")}>
              Cancel this job
            </button>
          )}
          {mayRetry && (
            <button type="button" className="button slim" onClick={() => void act(() => got(api.POST("/api/v1/jobs/{job_id}/retry", asked)), "The job waits again")}>
              Try this job again
            </button>
          )}
        </>
      }
    >
      <div className="stack">
        <Facts
          of={[
            ["State", <State key="state" of={job.state} />],
            ["Id", <span key="id" className="mono">{job.id}</span>],
            ...(job.reason ? [["Reason", job.reason] as const] : []),
            ...(job.failure ? [["Failure", `${job.failure.message} ${job.failure.hint}`] as const] : []),
            ...(job.agent_id ? [["Agent", job.agent_id] as const] : []),
            ...(job.leased_at ? [["Ran for", <Lasted key="for" from={job.leased_at} to={job.ended_at} />] as const] : []),
            ...Object.entries(job.cell).map(([key, value]) => [key, String(value)] as const),
          ]}
        />
        <div className="row">
          <Link from="/experiments/$experimentId" search={(before) => ({ ...before, part: "samples", job: job.id })}>
            Its samples
          </Link>
          <Link from="/experiments/$experimentId" search={(before) => ({ ...before, part: "logs", job: job.id })}>
            Its log
          </Link>
        </div>
        <Shown query={detail}>
          {({ attempts }) =>
            attempts.length === 0 ? null : (
              <div className="scroll" tabIndex={0} role="region" aria-label="Attempts at this job">
                <table>
                  <thead>
                    <tr>
                      <th scope="col">Attempt</th>
                      <th scope="col">How it ended</th>
                      <th scope="col">Agent</th>
                      <th scope="col">Begun</th>
                      <th scope="col">Why</th>
                    </tr>
                  </thead>
                  <tbody>
                    {attempts.map((one) => (
                      <tr key={one.number}>
                        <td>{one.number}</td>
                        <td>
                          <State of={one.state} />
                        </td>
                        <td className="mono">{one.agent_id}</td>
                        <td title={exactly(one.leased_at)}>
                          <Ago at={one.leased_at} />
                        </td>
                        <td>{one.reason}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )
          }
        </Shown>
      </div>
    </Card>
  );
}
