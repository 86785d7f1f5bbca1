// Targets that stand-in agents go to, and the jobs that are or were placed at the one that is chosen.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";

import { api, readBody } from "@/api/client";
import type { PlacementView, ServedTarget } from "@/api/schema";
import { StateBadge } from "@/components/Badge";
import { SelectField } from "@/components/Field";
import { EmptyState, QueryContent } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { RelativeTime } from "@/components/time";

const route = getRouteApi("/fleet");
const MOST = 500;

function targetsQuery() {
  return queryOptions({
    queryKey: ["targets"],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/targets", { params: { query: { limit: MOST } }, signal })),
  });
}

function placementsQuery(target: string) {
  return queryOptions({
    queryKey: ["targets", target],
    queryFn: ({ signal }) =>
      readBody(
        api.GET("/api/v1/targets/{target}/placements", {
          params: { path: { target }, query: { limit: MOST } },
          signal,
        }),
      ),
  });
}

const TARGETS: readonly Column<ServedTarget>[] = [
  { key: "name", heading: "Target", cell: (one) => <b>{one.name}</b> },
  { key: "kind", heading: "Kind", cell: (one) => one.kind },
  { key: "agent", heading: "Stand-in agent", cell: (one) => <AgentLink id={one.agent_id} /> },
  { key: "state", heading: "State", cell: (one) => <StateBadge of={one.agent_state} /> },
  { key: "slots", heading: "Slots", end: true, cell: (one) => one.slots },
  { key: "there", heading: "There now", cell: (one) => describePlaced(one) || <span className="muted">nothing</span> },
];

const PLACEMENTS: readonly Column<PlacementView>[] = [
  {
    key: "job",
    heading: "Job",
    cell: (one) => (
      <Link
        to="/experiments/$experimentId"
        params={{ experimentId: one.experiment_id }}
        search={{ part: "jobs", job: one.job_id }}
        className="mono"
      >
        {one.job_id}
      </Link>
    ),
  },
  { key: "attempt", heading: "Try", end: true, cell: (one) => one.attempt },
  { key: "phase", heading: "Phase", cell: ({ note }) => <StateBadge of={note.phase} /> },
  { key: "id", heading: "Id there", cell: ({ note }) => <span className="mono">{note.native_id || "–"}</span> },
  { key: "nodes", heading: "Nodes", cell: ({ note }) => note.nodes.join(", ") || "–" },
  {
    key: "submitted",
    heading: "Submitted",
    cell: ({ note }) => (note.submitted_at ? <RelativeTime at={note.submitted_at} /> : "–"),
  },
  { key: "waited", heading: "Waited", end: true, cell: ({ note }) => describeWait(note) },
  { key: "why", heading: "Why", cell: ({ note }) => note.reason || note.ending || "–" },
];

function AgentLink({ id }: { id: string }) {
  return (
    <Link to="/fleet/$agentId" params={{ agentId: id }} className="mono">
      {id}
    </Link>
  );
}

export function Targets() {
  return <QueryContent query={useQuery(targetsQuery())}>{({ items }) => <Served targets={items} />}</QueryContent>;
}

function Served({ targets }: { targets: readonly ServedTarget[] }) {
  const { target = targets[0]?.name } = route.useSearch();
  const navigate = route.useNavigate();
  if (target === undefined)
    return (
      <EmptyState title="No stand-in agent yet">
        <p>
          A stand-in agent takes jobs to a machine behind SSH or to a cluster:{" "}
          <code>prony agent start --on TARGET</code>.
        </p>
      </EmptyState>
    );
  const names = [...new Set(targets.map((one) => one.name))];
  return (
    <>
      <Table rows={targets} columns={TARGETS} keyOf={(one) => one.agent_id} label="Targets" />
      <div className="body">
        <SelectField
          label="Placed at"
          value={target}
          options={names.map((one) => ({ value: one, label: one }))}
          onChange={(to) => void navigate({ search: { part: "targets", target: to }, replace: true })}
        />
      </div>
      <Placed target={target} />
    </>
  );
}

function Placed({ target }: { target: string }) {
  return (
    <QueryContent query={useQuery(placementsQuery(target))}>
      {({ items }) =>
        items.length === 0 ? (
          <EmptyState title={`Nothing was placed at ${target} yet`} />
        ) : (
          <Table rows={items} columns={PLACEMENTS} keyOf={(one) => String(one.number)} label={`Placed at ${target}`} />
        )
      }
    </QueryContent>
  );
}

function describePlaced({ placed }: ServedTarget): string {
  return Object.entries(placed)
    .map(([phase, count]) => `${count} ${phase}`)
    .join(", ");
}

function describeWait({ submitted_at, started_at }: PlacementView["note"]): string {
  if (!submitted_at || !started_at) return "–";
  const seconds = Math.max(0, (Date.parse(started_at) - Date.parse(submitted_at)) / 1000);
  return `${seconds.toFixed(0)} s`;
}
