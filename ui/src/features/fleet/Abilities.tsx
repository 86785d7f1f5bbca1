// A table of which agent can run what.
import type { Agent } from "@/api/schema";
import { StateBadge, ToneShape } from "@/components/Badge";

import { type Ability, buildAbilityMatrix } from "./abilities";

export function Abilities({ agents }: { agents: readonly Agent[] }) {
  const { abilities, has, lacks } = buildAbilityMatrix(agents);
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Who can run what">
      <table className="abilities">
        <thead>
          <tr>
            <th scope="col">Agent</th>
            {abilities.map((one) => (
              <th key={one.key} scope="col" className={one.group === "workloads" ? "workload" : undefined}>
                {isOther(one.group) && <span className="muted">{one.group} </span>}
                {one.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {agents.map((agent) => (
            <tr key={agent.id}>
              <th scope="row">
                <span className="row">
                  {agent.name} {agent.state !== "active" && <StateBadge of={agent.state} />}
                </span>
              </th>
              {abilities.map((one) => (
                <AbilityCell
                  key={one.key}
                  said={has.get(agent.id)?.get(one.key)}
                  reason={lacks.get(agent.id)?.get(one.key)}
                />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function isOther(group: Ability["group"]): boolean {
  return group !== "workloads" && group !== "engines";
}

function AbilityCell({ said, reason }: { said: string | undefined; reason: string | undefined }) {
  if (said === undefined)
    return (
      <td className="muted" title={reason}>
        <span aria-hidden="true">·</span>
        <span className="unseen">no{reason === undefined ? "" : `: ${reason}`}</span>
      </td>
    );
  return (
    <td>
      <span className="ink-good" title={said}>
        <ToneShape tone="good" /> <span className={said === "yes" ? "unseen" : "muted"}>{said.split("-")[0]}</span>
      </span>
    </td>
  );
}
