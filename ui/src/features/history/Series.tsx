// The history page: recent changes, then all series with their state.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";

import type { ChangeState, Series as OneSeries, SeriesState } from "@/api/schema";
import { Badge } from "@/components/Badge";
import { DeferredTextField, SelectField } from "@/components/Field";
import { Card, Page } from "@/components/layout";
import { MetricName } from "@/components/MetricName";
import { DASH } from "@/components/number";
import { Quantity } from "@/components/Quantity";
import { EmptyState, Failure, Loading, QueryContent } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { RelativeTime } from "@/components/time";

import { Changes } from "./Changes";
import { changesQuery, seriesQuery } from "./queries";
import { CHANGE_STATES, SERIES_STATES } from "./search";
import { seriesTone } from "./tones";

const COLUMNS: readonly Column<OneSeries>[] = [
  {
    key: "title",
    heading: "Series",
    cell: (one) => (
      <Link to="/history/$seriesId" params={{ seriesId: one.id }}>
        <b>{one.name}</b> {one.title !== one.name && <span className="muted">{one.title}</span>}
      </Link>
    ),
  },
  { key: "branch", heading: "Branch", cell: (one) => one.branch || one.default_branch || DASH },
  { key: "machine", heading: "Machine", cell: (one) => one.machine },
  { key: "state", heading: "State", cell: (one) => <SeriesStatus of={one} /> },
  { key: "metric", heading: "Metric", cell: (one) => <MetricName of={one.metric} /> },
  { key: "last", heading: "Newest", end: true, cell: (one) => <NewestValue of={one} /> },
  { key: "runs", heading: "Results", end: true, cell: (one) => one.runs },
  { key: "at", heading: "Measured", cell: (one) => <RelativeTime at={one.last_at} /> },
];

export function Series() {
  const search = useSearch({ from: "/history" });
  const changes = useQuery(changesQuery(search.changes));
  return (
    <Page
      title="History"
      about="Every benchmark over time: what changed, by how much, how certain it is, and what else changed."
    >
      <Card title="What changed" flush actions={<ChangeFilter />}>
        <QueryContent query={changes}>
          {(page) =>
            page.items.length === 0 ? (
              <EmptyState title={search.changes === undefined ? "No open changes" : `No ${search.changes} changes`}>
                <p>A series is judged after 20 results. Changes appear here within seconds.</p>
              </EmptyState>
            ) : (
              <Changes of={page.items} withSeries />
            )
          }
        </QueryContent>
      </Card>
      <SeriesList />
    </Page>
  );
}

function SeriesList() {
  const search = useSearch({ from: "/history" });
  const navigate = useNavigate({ from: "/history" });
  const series = useInfiniteQuery(seriesQuery(search));
  const rows = useMemo(() => series.data?.pages.flatMap((page) => page.items) ?? [], [series.data]);
  return (
    <Card
      title="Series"
      flush
      actions={
        <>
          <DeferredTextField
            label="Recipe"
            value={search.name ?? ""}
            placeholder="full name"
            onChange={(name) =>
              void navigate({ search: (before) => ({ ...before, name: name || undefined }), replace: true })
            }
          />
          <SelectField
            label="State"
            value={search.state ?? ""}
            options={[{ value: "", label: "any" }, ...SERIES_STATES.map((state) => ({ value: state, label: state }))]}
            onChange={(state) =>
              void navigate({
                search: (before) => ({ ...before, state: (state || undefined) as SeriesState | undefined }),
                replace: true,
              })
            }
          />
        </>
      }
    >
      {series.error ? (
        <Failure error={series.error} onRetry={() => void series.refetch()} />
      ) : series.data === undefined ? (
        <Loading />
      ) : rows.length === 0 ? (
        <EmptyState title="No series yet">
          <p>A series has all results of one benchmark with the same parameters on one kind of machine.</p>
        </EmptyState>
      ) : (
        <Table
          rows={rows}
          columns={COLUMNS}
          keyOf={(one) => one.id}
          label="Series"
          onPick={(one) => void navigate({ to: "/history/$seriesId", params: { seriesId: one.id } })}
          onEnd={series.hasNextPage && !series.isFetchingNextPage ? () => void series.fetchNextPage() : undefined}
        />
      )}
    </Card>
  );
}

function SeriesStatus({ of: one }: { of: OneSeries }) {
  const progress = one.state === "learning" ? ` ${one.learned}/${one.wanted}` : "";
  return (
    <Badge tone={seriesTone(one.state)} title={one.note || undefined}>
      {one.state}
      {progress}
    </Badge>
  );
}

function NewestValue({ of: one }: { of: OneSeries }) {
  return <Quantity of={one.last_value == null ? null : { value: one.last_value, unit: one.unit }} />;
}

function ChangeFilter() {
  const { changes } = useSearch({ from: "/history" });
  const navigate = useNavigate({ from: "/history" });
  return (
    <SelectField
      label="Shown"
      value={changes ?? ""}
      options={[
        { value: "", label: "open changes" },
        ...CHANGE_STATES.map((state) => ({ value: state, label: state })),
      ]}
      onChange={(state) =>
        void navigate({
          search: (before) => ({ ...before, changes: (state || undefined) as ChangeState | undefined }),
          replace: true,
        })
      }
    />
  );
}
