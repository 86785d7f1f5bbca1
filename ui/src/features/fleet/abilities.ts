// Builds the matrix of agents and abilities from what the agents report.
import type { AbilityReport, Agent } from "@/api/schema";
import { listValues } from "@/components/agentFacts";

export interface Ability {
  key: string;
  group: "workloads" | "engines" | AbilityReport["kind"];
  label: string;
}

export interface AbilityMatrix {
  abilities: Ability[];
  /** By agent id: the abilities that it has, each with what is said of it. */
  has: Map<string, Map<string, string>>;
  /** By agent id: the abilities that it has not, each with the reason that it gives. */
  lacks: Map<string, Map<string, string>>;
}

const KINDS = ["service", "container", "launcher", "probe"] as const;

/** Every kind of workload, every engine on every unit, service, container engine, launcher and probe that any agent has. */
export function buildAbilityMatrix(agents: readonly Agent[]): AbilityMatrix {
  const kinds = new Set<string>();
  const engines = new Set<string>();
  const others = new Map<string, AbilityReport>();
  const has = new Map<string, Map<string, string>>();
  const lacks = new Map<string, Map<string, string>>();
  for (const agent of agents) {
    const mine = new Map<string, string>();
    const facts = agent.capabilities.facts;
    for (const kind of listValues(facts["kinds"])) {
      kinds.add(kind);
      mine.set(`kind ${kind}`, "yes");
    }
    for (const engine of listValues(facts["engine"]))
      for (const unit of listValues(facts[`engine.${engine}.unit`])) {
        const key = `${engine} on ${unit}`;
        engines.add(key);
        mine.set(key, listValues(facts[`engine.${engine}`])[0] ?? "yes");
      }
    const lacking = new Map<string, string>();
    for (const one of agent.capabilities.abilities) {
      const key = `${one.kind} ${one.name}`;
      if (one.state === "ready") {
        others.set(key, one);
        mine.set(key, one.version ?? "yes");
      } else lacking.set(key, one.reason);
    }
    has.set(agent.id, mine);
    lacks.set(agent.id, lacking);
  }
  const abilities: Ability[] = [
    ...[...kinds].sort().map((kind) => ({ key: `kind ${kind}`, group: "workloads" as const, label: kind })),
    ...[...engines].sort().map((engine) => ({ key: engine, group: "engines" as const, label: engine })),
    ...KINDS.flatMap((kind) =>
      [...others]
        .filter(([, one]) => one.kind === kind)
        .sort(([a], [b]) => a.localeCompare(b))
        .map(([key, one]) => ({ key, group: kind, label: one.name })),
    ),
  ];
  return { abilities, has, lacks };
}
