// The overview page: running experiments, problems and recent results; first steps on an empty server.
import "./overview.css";

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import type { ExperimentRow, Glance } from "@/api/schema";
import { ExperimentTable } from "@/charts/ExperimentTable";
import { describeState } from "@/components/Badge";
import { Card, Page } from "@/components/layout";
import { formatCount } from "@/components/number";
import { countEnded, Progress, shownState } from "@/components/Progress";
import { QueryContent } from "@/components/states";
import { Duration, formatDuration } from "@/components/time";

import { FirstSteps } from "./FirstSteps";
import { overviewQuery } from "./queries";
import { Troubles } from "./Troubles";

// The server lists no more than these.
const MOST_OPEN = 12;

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
      <OpenExperiments title="Running now" rows={glance.running.filter(isRunning)} />
      <OpenExperiments title="Waiting" rows={glance.running.filter((row) => !isRunning(row))} />
      <Card title="Recent experiments" flush>
        <ExperimentTable rows={glance.recent} label="Recent experiments" />
      </Card>
    </Page>
  );
}

function Tiles({ glance }: { glance: Glance }) {
  const { stats } = glance;
  const tiles: readonly (readonly [string, string, string?])[] = [
    ["Running jobs", String(stats.jobs.leased ?? 0), describeRunning(glance.running)],
    [
      "Waiting jobs",
      String(stats.jobs.waiting ?? 0),
      stats.oldest_waiting_s == null ? "no job is waiting" : `the oldest for ${formatDuration(stats.oldest_waiting_s)}`,
    ],
    ["Agents", String(glance.agents), describeAgents(stats.agents)],
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

/** How many experiments those jobs are of; the list is cut, and then so is the count. */
function describeRunning(open: readonly ExperimentRow[]): string {
  const count = open.filter(isRunning).length;
  if (count === 0) return "nothing runs";
  const least = open.length >= MOST_OPEN ? "at least " : "";
  return `of ${least}${count} ${count === 1 ? "experiment" : "experiments"}`;
}

function isRunning(row: ExperimentRow): boolean {
  return shownState(row.state, row.counts) === "running";
}

function OpenExperiments({ title, rows }: { title: string; rows: readonly ExperimentRow[] }) {
  if (rows.length === 0) return null;
  return (
    <Card title={title}>
      <ul className="running">
        {rows.map((row) => (
          <OpenExperiment key={row.id} row={row} />
        ))}
      </ul>
    </Card>
  );
}

function OpenExperiment({ row }: { row: ExperimentRow }) {
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
