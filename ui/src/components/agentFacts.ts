// Reads what an agent reports of its device.
import type { Agent } from "@/api/schema";

type Fact = Agent["capabilities"]["facts"][string];

export function listValues(fact: Fact | undefined): string[] {
  if (fact === undefined) return [];
  return (Array.isArray(fact) ? fact : [fact]).map(String);
}

/** The device in one line: processor, cores, memory, GPUs. */
export function describeDevice(agent: Agent): string {
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
