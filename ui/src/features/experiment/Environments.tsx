// The machines that the results were measured on, with what may disturb a measurement there.
import { useQuery } from "@tanstack/react-query";

import type { Entry } from "@/api/schema";
import { Card, Facts, Labels } from "@/components/layout";
import { formatValue } from "@/components/number";
import { EmptyState, QueryContent } from "@/components/states";

import { type Fact, resultsQuery } from "./queries";

export function Environments({ experimentId }: { experimentId: string }) {
  const results = useQuery(resultsQuery(experimentId));
  return (
    <QueryContent query={results}>
      {(data) => {
        const entries = data?.entries ?? [];
        if (entries.length === 0)
          return (
            <Card>
              <EmptyState title="No result yet">
                <p>Each result has a description of its machine.</p>
              </EmptyState>
            </Card>
          );
        const byMachine = new Map<string, Entry[]>();
        for (const entry of entries) {
          const id = entry.environment.device.software_id;
          byMachine.set(id, [...(byMachine.get(id) ?? []), entry]);
        }
        return (
          <div className="stack wide">
            {[...byMachine].map(([id, found]) =>
              found[0] ? (
                <Machine
                  key={id}
                  entry={found[0]}
                  jobs={found.length}
                  programs={data?.programs[found[0].job.id] ?? []}
                />
              ) : null,
            )}
          </div>
        );
      }}
    </QueryContent>
  );
}

function Machine({ entry, jobs, programs }: { entry: Entry; jobs: number; programs: readonly Fact[] }) {
  const { device, state, git, labels } = entry.environment;
  const { hardware, software } = device;
  return (
    <Card
      title={hardware.cpu.model ?? hardware.cpu.architecture}
      actions={<span className="muted small">{jobs} of the jobs ran here</span>}
    >
      <div className="columns">
        <Facts
          of={[
            ["Processor", hardware.cpu.model ?? "unknown"],
            ["Architecture", hardware.cpu.architecture],
            ["Cores", `${hardware.cpu.physical_cores ?? "?"} physical, ${hardware.cpu.allowed_cores ?? "?"} usable`],
            ...(hardware.memory_mib ? [["Memory", formatValue(hardware.memory_mib, "MiB")] as const] : []),
            ...hardware.gpus.map((gpu) => [`GPU ${gpu.index}`, gpu.name] as const),
            [
              "Hardware id",
              <span key="hardware" className="mono">
                {device.hardware_id}
              </span>,
            ],
            [
              "Software id",
              <span key="software" className="mono">
                {device.software_id}
              </span>,
            ],
          ]}
        />
        <Facts
          of={[
            ["System", `${software.os} ${software.os_version ?? ""}`],
            ["Kernel", software.kernel],
            ["Python", software.python],
            ["Prony", software.prony],
            ...(software.gpu_driver ? [["GPU driver", software.gpu_driver] as const] : []),
            ...programs.map(([name, value]) => [name, value ?? "unknown"] as const),
            ...(git
              ? [
                  [
                    "Commit",
                    <span key="git" className="mono">
                      {git.commit}
                      {git.dirty ? " (changed)" : ""}
                    </span>,
                  ] as const,
                ]
              : []),
          ]}
        />
      </div>
      <details>
        <summary>All details</summary>
        <pre className="code">{JSON.stringify({ device, state }, null, 2)}</pre>
      </details>
      <Labels of={labels} />
    </Card>
  );
}
