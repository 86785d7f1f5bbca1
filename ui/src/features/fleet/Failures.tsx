// What failed in all jobs of the last week, by cause.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { api, readBody } from "@/api/client";
import type { FailureGroup } from "@/api/schema";
import { EmptyState, QueryContent } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { RelativeTime } from "@/components/time";

const DAYS = 7;

function failuresQuery() {
  return queryOptions({
    queryKey: ["failures"],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/failures", { params: { query: { days: DAYS } }, signal })),
  });
}

const COLUMNS: readonly Column<FailureGroup>[] = [
  { key: "count", heading: "Failures", end: true, cell: (one) => one.failures },
  {
    key: "cause",
    heading: "Cause",
    cell: (one) => (
      <>
        <b>{one.code}</b> {one.message}
        {one.hint && <div className="muted">{one.hint}</div>}
      </>
    ),
  },
  { key: "agents", heading: "Agents", cell: (one) => describeCounts(one.agents) },
  { key: "recipes", heading: "Recipes", cell: (one) => describeCounts(one.recipes) },
  { key: "last", heading: "Newest", cell: (one) => <RelativeTime at={one.last_at} /> },
  {
    key: "job",
    heading: "Newest job",
    cell: (one) => (
      <Link
        to="/experiments/$experimentId"
        params={{ experimentId: one.newest_experiment }}
        search={{ part: "jobs", job: one.newest_job }}
        className="mono"
      >
        {one.newest_job}
      </Link>
    ),
  },
];

export function Failures() {
  return (
    <QueryContent query={useQuery(failuresQuery())}>
      {({ groups }) =>
        groups.length === 0 ? (
          <EmptyState title={`No failures in the last ${DAYS} days`} />
        ) : (
          <Table
            rows={groups}
            columns={COLUMNS}
            keyOf={(one) => `${one.code} ${one.newest_job}`}
            label="Failures by cause"
          />
        )
      }
    </QueryContent>
  );
}

function describeCounts(counts: FailureGroup["agents"]): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name || "without a server"} (${count})`)
    .join(", ");
}
