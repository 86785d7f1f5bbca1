// The jobs of all experiments by state, newest first.
import { infiniteQueryOptions, useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";

import { api, readBody } from "@/api/client";
import type { JobState, QueuedJob } from "@/api/schema";
import { describeState, StateBadge } from "@/components/Badge";
import { SelectField } from "@/components/Field";
import { EmptyState, Failure, Loading } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { RelativeTime } from "@/components/time";

import { JOB_STATES } from "./search";

const route = getRouteApi("/fleet");
const PAGE = 200;

function jobsQuery(state: JobState | undefined) {
  return infiniteQueryOptions({
    queryKey: ["jobs", state],
    queryFn: ({ signal, pageParam }) =>
      readBody(
        api.GET("/api/v1/jobs", {
          params: { query: { limit: PAGE, ...(state ? { state } : {}), ...(pageParam ? { cursor: pageParam } : {}) } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next ?? null,
  });
}

const COLUMNS: readonly Column<QueuedJob>[] = [
  {
    key: "title",
    heading: "Job",
    cell: (one) => (
      <div className="two-lines">
        <Link
          to="/experiments/$experimentId"
          params={{ experimentId: one.experiment_id }}
          search={{ part: "jobs", job: one.id }}
        >
          {one.title}
        </Link>
        <span className="mono muted">{one.id}</span>
      </div>
    ),
  },
  { key: "state", heading: "State", cell: (one) => <StateBadge of={one.state} /> },
  { key: "agent", heading: "Agent", cell: (one) => <span className="mono">{one.agent_id ?? "–"}</span> },
  { key: "attempt", heading: "Attempts", end: true, cell: (one) => one.attempt },
  { key: "since", heading: "Submitted", cell: (one) => <RelativeTime at={one.created_at} /> },
  { key: "why", heading: "Why", cell: (one) => one.failure?.message ?? one.reason },
];

export function Jobs() {
  const { state } = route.useSearch();
  const navigate = route.useNavigate();
  const jobs = useInfiniteQuery(jobsQuery(state));
  const rows = jobs.data?.pages.flatMap((page) => page.items) ?? [];
  const options = [
    { value: "", label: "any" },
    ...JOB_STATES.map((one) => ({ value: one, label: describeState(one) })),
  ];
  return (
    <>
      <div className="body">
        <SelectField
          label="State"
          value={state ?? ""}
          options={options}
          onChange={(to) =>
            void navigate({ search: { part: "jobs", state: JOB_STATES.find((one) => one === to) }, replace: true })
          }
        />
      </div>
      {jobs.error ? (
        <Failure error={jobs.error} onRetry={() => void jobs.refetch()} />
      ) : jobs.data === undefined ? (
        <Loading />
      ) : rows.length === 0 ? (
        <EmptyState title={state === undefined ? "No job yet" : `No ${state} jobs`} />
      ) : (
        <Table
          rows={rows}
          columns={COLUMNS}
          keyOf={(one) => one.id}
          label="Jobs of all experiments"
          rowHeight={58}
          onEnd={jobs.hasNextPage && !jobs.isFetchingNextPage ? () => void jobs.fetchNextPage() : undefined}
        />
      )}
    </>
  );
}
