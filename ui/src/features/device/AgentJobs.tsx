// The newest jobs of an agent, the one that it runs first.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import type { QueuedJob } from "@/api/schema";
import { StateBadge } from "@/components/Badge";
import { EmptyState, QueryContent } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { Duration, RelativeTime } from "@/components/time";

import { agentJobsQuery } from "./queries";

const COLUMNS: readonly Column<QueuedJob>[] = [
  {
    key: "job",
    heading: "Job",
    cell: (one) => (
      <Link
        to="/experiments/$experimentId"
        params={{ experimentId: one.experiment_id }}
        search={{ part: "jobs", job: one.id }}
      >
        {one.title}
      </Link>
    ),
  },
  { key: "state", heading: "State", cell: (one) => <StateBadge of={one.state} title={one.reason} /> },
  {
    key: "ran",
    heading: "Ran",
    end: true,
    cell: (one) => (one.leased_at ? <Duration from={one.leased_at} to={one.ended_at} /> : "–"),
  },
  { key: "ended", heading: "Ended", cell: (one) => <RelativeTime at={one.ended_at} /> },
];

export function AgentJobs({ agentId }: { agentId: string }) {
  return (
    <QueryContent query={useQuery(agentJobsQuery(agentId))}>
      {({ items }) =>
        items.length === 0 ? (
          <EmptyState title="This agent has run no job yet" />
        ) : (
          <Table
            rows={[...items].sort((a, b) => Number(b.state === "leased") - Number(a.state === "leased"))}
            columns={COLUMNS}
            keyOf={(one) => one.id}
            label="Jobs of this agent"
            maxHeight="280px"
          />
        )
      }
    </QueryContent>
  );
}
