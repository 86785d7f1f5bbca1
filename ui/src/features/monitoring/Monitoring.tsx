// The monitoring page: the server's health, jobs, agents and leases, with links to its metrics.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { api, readBody, sendRequest } from "@/api/client";
import { aboutQuery, queueQuery } from "@/api/fleet";
import { statsQuery } from "@/api/queries";
import type { About, Health, LeaseView, Stats } from "@/api/schema";
import { Badge, StateBadge } from "@/components/Badge";
import { Card, Facts, Page } from "@/components/layout";
import { ServerLink } from "@/components/ServerLink";
import { EmptyState, QueryContent } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { Duration, formatDuration } from "@/components/time";

const OFTEN_MS = 5000;

/** A server that is not well answers 503 with the same body: that is an answer too. */
async function fetchHealth(signal: AbortSignal): Promise<Health> {
  const response = await fetch("/api/v1/health", { signal });
  if (response.status === 200 || response.status === 503) return (await response.json()) as Health;
  return (await sendRequest(new Request(new URL("/api/v1/health", location.origin)))).json() as Promise<Health>;
}

const healthQuery = queryOptions({
  queryKey: ["monitoring", "health"],
  queryFn: ({ signal }) => fetchHealth(signal),
  refetchInterval: OFTEN_MS,
});
const leasesQuery = queryOptions({
  queryKey: ["leases"],
  queryFn: ({ signal }) => readBody(api.GET("/api/v1/leases", { signal })),
  refetchInterval: OFTEN_MS,
});

const LEASES: readonly Column<LeaseView>[] = [
  { key: "job", heading: "Job", cell: (one) => <JobLink of={one} /> },
  { key: "agent", heading: "Agent", cell: (one) => <span className="mono">{one.agent_id}</span> },
  { key: "attempt", heading: "Attempt", cell: (one) => one.attempt, end: true },
  { key: "since", heading: "Running for", cell: (one) => <Duration from={one.leased_at} /> },
];

export function Monitoring() {
  const about = useQuery(aboutQuery());
  const stats = useQuery({ ...statsQuery(), refetchInterval: OFTEN_MS });
  const queue = useQuery(queueQuery());
  return (
    <Page title="Monitoring" about="The state of this server." actions={about.data && <MetricsLinks of={about.data} />}>
      <div className="columns">
        <Card title="Health">
          <QueryContent query={useQuery(healthQuery)}>{(found) => <HealthParts of={found} />}</QueryContent>
        </Card>
        <Card title="Jobs and agents">
          <QueryContent query={stats}>{(found) => <StatsFacts of={found} />}</QueryContent>
        </Card>
      </div>
      <Card title="Leases" flush label="Leases">
        <QueryContent query={useQuery(leasesQuery)}>
          {(found) =>
            found.length === 0 ? (
              <EmptyState title="No job is running">
                <p>
                  {queue.data?.waiting
                    ? `${queue.data.waiting} jobs are waiting; see the queue of the fleet for reasons.`
                    : "No job is waiting either."}
                </p>
              </EmptyState>
            ) : (
              <Table rows={found} columns={LEASES} keyOf={(one) => one.id} label="Leases" />
            )
          }
        </QueryContent>
      </Card>
    </Page>
  );
}

// What the server calls its parts.
const PARTS: Record<string, string> = { database: "Database", writer: "Writes", disk: "Disk", round: "Maintenance" };

function HealthParts({ of: found }: { of: Health }) {
  return (
    <div className="stack">
      <p>
        <Badge tone={found.ok ? "good" : "bad"}>{found.ok ? "all parts work" : "a part of the server fails"}</Badge>
      </p>
      <Facts
        of={[
          ["Version", found.version],
          ...found.parts.map(
            (part) =>
              [
                PARTS[part.name] ?? part.name,
                <span key={part.name} className="row">
                  <StateBadge of={part.ok ? "ok" : "failed"} /> <span className="muted">{part.detail}</span>
                </span>,
              ] as const,
          ),
        ]}
      />
    </div>
  );
}

function StatsFacts({ of: found }: { of: Stats }) {
  const jobs = Object.entries(found.jobs).map(([state, count]) => [`Jobs ${state}`, count] as const);
  const agents = Object.entries(found.agents).map(([state, count]) => [`Agents ${state}`, count] as const);
  return (
    <Facts
      of={[
        ...jobs,
        ["Ended in the last hour", found.ended_last_hour],
        ["Oldest waiting job", found.oldest_waiting_s == null ? "–" : formatDuration(found.oldest_waiting_s)],
        ["Oldest lease", found.oldest_lease_s == null ? "–" : formatDuration(found.oldest_lease_s)],
        ...agents,
      ]}
    />
  );
}

function MetricsLinks({ of: about }: { of: About }) {
  const links = [
    ["Prometheus", about.prometheus],
    ["Grafana", about.grafana],
  ] as const;
  // An address that is no web page is text, never a link.
  const good = links.filter(([, url]) => /^https?:\/\//.test(url));
  return (
    <>
      {good.map(([name, url]) => (
        <a key={name} className="button" href={url} rel="noreferrer">
          {name}
        </a>
      ))}
      {!about.asks_tokens && (
        <ServerLink className="button" href="/metrics">
          Metrics for Prometheus
        </ServerLink>
      )}
    </>
  );
}

function JobLink({ of: lease }: { of: LeaseView }) {
  return (
    <Link to="/experiments/$experimentId" params={{ experimentId: lease.experiment_id }} className="mono">
      {lease.job_id}
    </Link>
  );
}
