// What agents say of themselves in, the table of who can run what out.
import type { Agent } from "@/api/schema";

export interface Ability {
  key: string;
  group: "workloads" | "engines";
  label: string;
}

export interface AbilityMatrix {
  abilities: Ability[];
  /** By agent id: the abilities that it has, each with what is said of it. */
  has: Map<string, Map<string, string>>;
}

type Fact = Agent["capabilities"]["facts"][string];

export function valuesOf(fact: Fact | undefined): string[] {
  if (fact === undefined) return [];
  return (Array.isArray(fact) ? fact : [fact]).map(String);
}

/** Every kind of workload, and every engine on every unit, that any agent has. */
export function abilityMatrix(agents: readonly Agent[]): AbilityMatrix {
  const kinds = new Set<string>();
  const engines = new Set<string>();
  const has = new Map<string, Map<string, string>>();
  for (const agent of agents) {
    const mine = new Map<string, string>();
    const facts = agent.capabilities.facts;
    for (const kind of valuesOf(facts["kinds"])) {
      kinds.add(kind);
      mine.set(`kind ${kind}`, "yes");
    }
    for (const engine of valuesOf(facts["engine"]))
      for (const unit of valuesOf(facts[`engine.${engine}.unit`])) {
        const key = `${engine} on ${unit}`;
        engines.add(key);
        mine.set(key, valuesOf(facts[`engine.${engine}`])[0] ?? "yes");
      }
    has.set(agent.id, mine);
  }
  const abilities: Ability[] = [
    ...[...kinds].sort().map((kind) => ({ key: `kind ${kind}`, group: "workloads" as const, label: kind })),
    ...[...engines].sort().map((engine) => ({ key: engine, group: "engines" as const, label: engine })),
  ];
  return { abilities, has };
}

/** The device in one line: processor, cores, memory, GPUs. */
export function deviceOf(agent: Agent): string {
  const hardware = agent.capabilities.device?.hardware;
  if (!hardware) return "";
  const { cpu, gpus, memory_mib } = hardware;
  const cores = cpu.allowed_cores ?? cpu.logical_cores;
  const parts = [
    cpu.model || cpu.architecture,
    cores ? `${cores} cores` : "",
    memory_mib ? `${Math.round(memory_mib / 1024)} GiB` : "",
    ...gpus.map((gpu) => gpu.name),
  ];
  return parts.filter(Boolean).join(", ");
}
