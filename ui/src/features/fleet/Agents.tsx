// A table of agents with their state, device, abilities and job; agents are drained, reset and removed here.
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { api, readBody } from "@/api/client";
import type { Agent } from "@/api/schema";
import { describeDevice, listValues } from "@/components/agentFacts";
import { StateBadge } from "@/components/Badge";
import { ConfirmButton } from "@/components/Dialog";
import { Labels } from "@/components/layout";
import { type Column, Table } from "@/components/Table";
import { RelativeTime } from "@/components/time";
import { useAction } from "@/components/toasts";

const COLUMNS: readonly Column<Agent>[] = [
  {
    key: "name",
    heading: "Agent",
    cell: (one) => (
      <div className="two-lines">
        <b>
          <Link to="/fleet/$agentId" params={{ agentId: one.id }}>
            {one.name}
          </Link>
        </b>
        <span className="mono muted">{one.id}</span>
      </div>
    ),
  },
  {
    key: "state",
    heading: "State",
    cell: (one) => (
      <div className="two-lines">
        <StateBadge of={one.state} />
        {one.reason !== "" && (
          <span className="muted clamp" title={one.reason}>
            {one.reason}
          </span>
        )}
      </div>
    ),
  },
  {
    key: "device",
    heading: "Device",
    cell: (one) => (
      <div className="two-lines">
        <span>{one.capabilities.device?.name ?? <span className="muted">unknown</span>}</span>
        <span className="muted clamp" title={describeDevice(one)}>
          {describeDevice(one)}
        </span>
      </div>
    ),
  },
  {
    key: "engines",
    heading: "Engines",
    cell: (one) => (
      <div className="two-lines">
        <span className="clamp" title={listEngines(one)}>
          {listEngines(one) || "–"}
        </span>
        <Labels of={one.capabilities.labels} />
      </div>
    ),
  },
  { key: "job", heading: "Runs", cell: (one) => <JobLink of={one} /> },
  { key: "seen", heading: "Last seen", cell: (one) => <RelativeTime at={one.seen_at} /> },
  { key: "act", heading: <span className="unseen">Actions</span>, cell: (one) => <Actions of={one} />, end: true },
];

function listEngines(one: Agent): string {
  return listValues(one.capabilities.facts["engine"]).join(", ");
}

export function Agents({ agents }: { agents: readonly Agent[] }) {
  return <Table rows={agents} columns={COLUMNS} keyOf={(one) => one.id} label="Agents" rowHeight={58} />;
}

function JobLink({ of: agent }: { of: Agent }) {
  if (!agent.job_id) return <span className="muted">–</span>;
  const experimentId = agent.job_id.slice(0, agent.job_id.lastIndexOf("-"));
  return (
    <Link to="/experiments/$experimentId" params={{ experimentId }} className="mono">
      {agent.job_id}
    </Link>
  );
}

function Actions({ of: agent }: { of: Agent }) {
  const act = useAction();
  const client = useQueryClient();
  const params = { params: { path: { agent_id: agent.id } } };
  const refresh = (): Promise<void> => client.invalidateQueries({ queryKey: ["agents"] });
  const runAndRefresh = async (work: Promise<unknown>): Promise<void> => {
    await work;
    await refresh();
  };
  const isStill = agent.state === "draining" || agent.state === "faulty";
  return (
    <div className="row end">
      {isStill ? (
        <button
          type="button"
          className="button slim"
          onClick={() =>
            void act(
              () => runAndRefresh(readBody(api.POST("/api/v1/agents/{agent_id}/reset", params))),
              `${agent.name} is active again`,
            )
          }
        >
          Reset
        </button>
      ) : (
        <button
          type="button"
          className="button slim"
          disabled={agent.state === "lost" || agent.state === "stopped"}
          onClick={() =>
            void act(
              () => runAndRefresh(readBody(api.POST("/api/v1/agents/{agent_id}/drain", params))),
              `${agent.name} gets no more jobs`,
            )
          }
        >
          Drain
        </button>
      )}
      <ConfirmButton
        label="Remove"
        className="button slim quiet"
        title={`Remove ${agent.name}?`}
        question="The server removes this agent and its token. Its results are kept. To come back, it must enrol again."
        yes="Remove it"
        act={() => runAndRefresh(readBody(api.DELETE("/api/v1/agents/{agent_id}", params)))}
      />
    </div>
  );
}
