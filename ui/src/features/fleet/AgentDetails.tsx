// The details of one agent: what it can run, what it lacks and why, and the facts that recipes can ask for.
import type { AbilityReport, Agent } from "@/api/schema";
import { Badge } from "@/components/Badge";
import { Dialog } from "@/components/Dialog";
import { Facts } from "@/components/layout";
import { type Column, Table } from "@/components/Table";

import { listValues } from "./abilities";

const COLUMNS: readonly Column<AbilityReport>[] = [
  { key: "kind", heading: "Kind", cell: (one) => one.kind },
  { key: "name", heading: "Name", cell: (one) => <b>{one.name}</b> },
  {
    key: "state",
    heading: "State",
    cell: (one) => (
      <Badge tone={one.state === "ready" ? "good" : one.state === "broken" ? "bad" : "quiet"}>{one.state}</Badge>
    ),
  },
  { key: "version", heading: "Version", cell: (one) => <span title={one.path}>{one.version ?? "–"}</span> },
  { key: "means", heading: "Means", cell: (one) => one.means.join(", ") || "–" },
  { key: "reason", heading: "Why not", cell: (one) => one.reason || <span className="muted">–</span> },
];

export function AgentDetails({ agent, onClose }: { agent: Agent; onClose: () => void }) {
  const { abilities, facts } = agent.capabilities;
  return (
    <Dialog title={`What ${agent.name} can do`} onClose={onClose}>
      {abilities.length === 0 ? (
        <p>
          This agent does not report its services, container engines and launchers: its Prony is too old. It gets no job
          that needs one.
        </p>
      ) : (
        <Table
          rows={abilities}
          columns={COLUMNS}
          keyOf={(one) => `${one.kind} ${one.name}`}
          label="Services, container engines, launchers and probes"
        />
      )}
      <h3>Facts for place.where in a recipe</h3>
      <Facts of={Object.entries(facts).map(([name, fact]) => [name, listValues(fact).join(", ")])} />
    </Dialog>
  );
}
