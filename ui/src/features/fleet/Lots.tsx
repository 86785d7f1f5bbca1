// The queue in the order in which it is served, with the reason why each lot waits.
import { Link } from "@tanstack/react-router";

import type { LotView } from "@/api/schema";
import { EmptyState } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { RelativeTime } from "@/components/time";

const COLUMNS: readonly Column<LotView>[] = [
  {
    key: "experiment",
    heading: "Experiment",
    cell: ({ lot, experiment_name }) => (
      <Link to="/experiments/$experimentId" params={{ experimentId: lot.experiment_id }}>
        <b>{experiment_name || lot.experiment_id}</b>
      </Link>
    ),
  },
  { key: "wants", heading: "Wants", cell: ({ lot }) => <span className="mono">{describeDemand(lot)}</span> },
  { key: "waiting", heading: "Waiting", cell: (one) => one.waiting, end: true },
  { key: "leased", heading: "Running", cell: (one) => one.leased, end: true },
  { key: "priority", heading: "Priority", cell: ({ lot }) => lot.priority, end: true },
  { key: "since", heading: "Since", cell: ({ lot }) => <RelativeTime at={lot.created_at} /> },
  { key: "reason", heading: "Why", cell: (one) => one.reason || <span className="muted">running</span> },
];

export function Lots({ lots }: { lots: readonly LotView[] }) {
  if (lots.length === 0)
    return (
      <EmptyState title="No job is waiting">
        <p>All submitted jobs have ended.</p>
      </EmptyState>
    );
  return <Table rows={lots} columns={COLUMNS} keyOf={(one) => one.lot.id} label="Waiting jobs and reasons" />;
}

function describeDemand({ demand }: LotView["lot"]): string {
  const needs = [
    demand.kind,
    demand.engine,
    demand.unit,
    demand.precision,
    demand.service,
    demand.containers.join(" or "),
    demand.launcher,
  ].filter(Boolean);
  const where = Object.entries(demand.where).map(
    ([fact, value]) => `${fact} ${Array.isArray(value) ? value.join(" or ") : String(value)}`,
  );
  return [...needs, ...where].join(", ");
}
