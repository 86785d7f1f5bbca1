// What an agent can run, what it lacks and why, and the facts that recipes can ask for.
import type { AbilityReport, Agent, EngineReport } from "@/api/schema";
import { listValues } from "@/components/agentFacts";
import { Badge, type Tone } from "@/components/Badge";
import { Card, Facts } from "@/components/layout";
import { type Column, Table } from "@/components/Table";

const TONES: Record<EngineReport["state"], Tone> = {
  ready: "good",
  broken: "bad",
  missing: "quiet",
  unsupported: "quiet",
};

const ENGINES: readonly Column<EngineReport>[] = [
  { key: "name", heading: "Engine", cell: (one) => <b>{one.name}</b> },
  { key: "state", heading: "State", cell: (one) => <Badge tone={TONES[one.state]}>{one.state}</Badge> },
  { key: "version", heading: "Version", cell: (one) => one.version ?? "–" },
  { key: "units", heading: "Units", cell: (one) => one.units.map((unit) => unit.unit).join(", ") || "–" },
  { key: "reason", heading: "Why not", cell: (one) => one.reason || "–" },
];

const ABILITIES: readonly Column<AbilityReport>[] = [
  { key: "kind", heading: "Kind", cell: (one) => one.kind },
  { key: "name", heading: "Name", cell: (one) => <b>{one.name}</b> },
  { key: "state", heading: "State", cell: (one) => <Badge tone={TONES[one.state]}>{one.state}</Badge> },
  { key: "version", heading: "Version", cell: (one) => <span title={one.path}>{one.version ?? "–"}</span> },
  { key: "means", heading: "Means", cell: (one) => one.means.join(", ") || "–" },
  { key: "reason", heading: "Why not", cell: (one) => one.reason || <span className="muted">–</span> },
];

export function AgentAbilities({ agent }: { agent: Agent }) {
  const { abilities, engines, facts } = agent.capabilities;
  return (
    <>
      {engines.length > 0 && (
        <Card title="Engines" flush>
          <Table rows={engines} columns={ENGINES} keyOf={(one) => one.name} label="Engines" />
        </Card>
      )}
      <Card title="Services, container engines, launchers and probes" flush={abilities.length > 0}>
        {abilities.length === 0 ? (
          <p>
            This agent does not report its services, container engines and launchers: its Prony is too old. It gets no
            job that needs one.
          </p>
        ) : (
          <Table
            rows={abilities}
            columns={ABILITIES}
            keyOf={(one) => `${one.kind} ${one.name}`}
            label="Services, container engines, launchers and probes"
          />
        )}
      </Card>
      <Card title="Facts for place.where in a recipe">
        <Facts of={Object.entries(facts).map(([name, fact]) => [name, listValues(fact).join(", ")])} />
      </Card>
    </>
  );
}
