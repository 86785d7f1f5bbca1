// The overview page: running experiments, problems and recent results; first steps on an empty server.
import "./overview.css";

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import type { ExperimentRow, Glance } from "@/api/schema";
import { ExperimentTable } from "@/charts/ExperimentTable";
import { describeState } from "@/components/Badge";
import { Card, Page } from "@/components/layout";
import { formatCount } from "@/components/number";
import { countEnded, Progress } from "@/components/Progress";
import { QueryContent } from "@/components/states";
import { Duration, formatDuration } from "@/components/time";

import { FirstSteps } from "./FirstSteps";
import { overviewQuery } from "./queries";
import { Troubles } from "./Troubles";

export function Overview() {
  const query = useQuery(overviewQuery());
  return (
    <QueryContent query={query} what="Loading the overview">
      {(glance) => (glance.stats.experiments === 0 ? <FirstSteps glance={glance} /> : <OverviewPage glance={glance} />)}
    </QueryContent>
  );
}

function OverviewPage({ glance }: { glance: Glance }) {
  return (
    <Page
      title="Overview"
      actions={
        <Link className="button primary" to="/experiments">
          All experiments
        </Link>
      }
    >
      <Tiles glance={glance} />
      <Troubles glance={glance} />
      {glance.running.length > 0 && (
        <Card title="Running now">
          <ul className="running">
            {glance.running.map((row) => (
              <RunningExperiment key={row.id} row={row} />
            ))}
          </ul>
        </Card>
      )}
      <Card title="Recent experiments" flush>
        <ExperimentTable rows={glance.recent} label="Recent experiments" />
      </Card>
    </Page>
  );
}

function Tiles({ glance }: { glance: Glance }) {
  const { stats } = glance;
  const tiles: readonly (readonly [string, string, string?])[] = [
    [
      "Running",
      String(glance.running.length),
      stats.jobs.leased === 1 ? "1 job on an agent" : `${stats.jobs.leased ?? 0} jobs on agents`,
    ],
    [
      "Waiting jobs",
      String(stats.jobs.waiting ?? 0),
      stats.oldest_waiting_s == null ? "no job is waiting" : `the oldest for ${formatDuration(stats.oldest_waiting_s)}`,
    ],
    ["Available agents", String(glance.agents), describeAgents(stats.agents)],
    [
      "Stored experiments",
      formatCount(stats.experiments),
      `${stats.ended_last_hour} ${stats.ended_last_hour === 1 ? "job" : "jobs"} ended in the last hour`,
    ],
  ];
  return (
    <div className="tiles">
      {tiles.map(([name, value, about]) => (
        <div key={name} className="card tile">
          <span className="muted small">{name}</span>
          <b>{value}</b>
          <span className="muted small">{about}</span>
        </div>
      ))}
    </div>
  );
}

function describeAgents(agents: Partial<Record<string, number>>): string {
  const parts = Object.entries(agents).filter(([, count]) => (count ?? 0) > 0);
  return parts.map(([state, count]) => `${String(count)} ${describeState(state)}`).join(", ") || "no agent yet";
}

function RunningExperiment({ row }: { row: ExperimentRow }) {
  return (
    <li>
      <Link to="/experiments/$experimentId" params={{ experimentId: row.id }}>
        {row.name}
      </Link>
      <Progress counts={row.counts} total={row.job_count} />
      <span className="muted small">
        {countEnded(row.counts)} of {row.job_count} jobs, for <Duration from={row.created_at} />
      </span>
    </li>
  );
}
