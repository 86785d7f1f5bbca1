// The list of experiments; the server searches, filters and sorts it.
import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useCallback, useDeferredValue, useEffect, useMemo, useState } from "react";

import { api, readBody } from "@/api/client";
import type { Listing } from "@/api/schema";
import { ExperimentTable } from "@/charts/ExperimentTable";
import { describeState } from "@/components/Badge";
import { Card, Page } from "@/components/layout";
import { formatCount } from "@/components/number";
import { EmptyState, Failure, Loading } from "@/components/states";
import type { Sorting } from "@/components/Table";

import { Selection } from "./Selection";
import { GATES, GRADES, type ListSearch, STATES } from "./search";

const route = getRouteApi("/experiments");
const PAGE = 200;
const NONE: ReadonlySet<string> = new Set();
// What a column sorts by, in the server's words: down and up.
const ORDERS: Record<string, readonly [NonNullable<ListSearch["sort"]>, NonNullable<ListSearch["sort"]>]> = {
  created: ["newest", "oldest"],
  value: ["highest", "lowest"],
  name: ["name", "name"],
};

function useListing(asked: ListSearch) {
  return useInfiniteQuery({
    queryKey: ["listing", asked],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      readBody(
        api.GET("/api/v1/listing", {
          signal,
          params: { query: { ...asked, limit: PAGE, ...(pageParam ? { cursor: pageParam } : {}) } },
        }),
      ),
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: (before) => before,
  });
}

export function Experiments() {
  const asked = route.useSearch();
  const navigate = route.useNavigate();
  const listing = useListing(asked);
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = listing;
  const rows = useMemo(() => listing.data?.pages.flatMap((page) => page.items) ?? [], [listing.data]);
  const first = listing.data?.pages[0];
  const [chosen, setChosen] = useState<ReadonlySet<string>>(NONE);
  const ask = useCallback(
    (change: Partial<ListSearch>) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true }),
    [navigate],
  );
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const onSort = (sorting: Sorting): void => ask({ sort: ORDERS[sorting.by]?.[sorting.descending ? 0 : 1] });
  const isFiltered = Object.values({ ...asked, sort: undefined }).some(Boolean);
  return (
    <Page
      title="Experiments"
      about={first && `${formatCount(first.total)} ${isFiltered ? "found" : "stored"}`}
      actions={
        <Link to="/import" className="button">
          Import
        </Link>
      }
    >
      <Filters asked={asked} ask={ask} listing={first} />
      {listing.error && <Failure error={listing.error} onRetry={() => void listing.refetch()} />}
      {!first && !listing.error && <Loading what="Loading experiments" />}
      {first && rows.length === 0 && (
        <NoExperiments isFiltered={isFiltered} clear={() => void navigate({ search: {} })} />
      )}
      <Selection rows={rows.filter((row) => chosen.has(row.id))} clear={() => setChosen(NONE)} />
      {rows.length > 0 && (
        <Card flush>
          <ExperimentTable
            rows={rows}
            label="Experiments"
            sorting={sortingFor(asked.sort ?? "newest")}
            onSort={onSort}
            selection={{ chosen, onChange: setChosen, nameOf: (row) => `${row.name} ${row.id}` }}
            onEnd={more}
          />
        </Card>
      )}
    </Page>
  );
}

function sortingFor(sort: NonNullable<ListSearch["sort"]>): Sorting {
  const by = Object.keys(ORDERS).find((key) => ORDERS[key]?.includes(sort)) ?? "created";
  return { by, descending: ORDERS[by]?.[0] === sort };
}

function NoExperiments({ isFiltered, clear }: { isFiltered: boolean; clear: () => void }) {
  if (!isFiltered)
    return (
      <Card>
        <EmptyState title="No experiments yet">
          <p>
            Experiments submitted from these pages or with <code>prony run --server</code> are listed here.
          </p>
        </EmptyState>
      </Card>
    );
  return (
    <Card>
      <EmptyState
        title="No experiment matches"
        actions={
          <button type="button" className="button" onClick={clear}>
            Clear the filters
          </button>
        }
      >
        <p>Try fewer words or another filter.</p>
      </EmptyState>
    </Card>
  );
}

interface FilterProps {
  asked: ListSearch;
  ask: (change: Partial<ListSearch>) => void;
  listing: Listing | undefined;
}

function Filters({ asked, ask, listing }: FilterProps) {
  const { labels = [], kinds = [], states = {} } = listing ?? {};
  return (
    <div className="row filters" role="search">
      <SearchBox
        key={asked.search === undefined ? "empty" : "given"}
        value={asked.search ?? ""}
        onChange={(search) => ask({ search: search || undefined })}
      />
      <FilterSelect
        label="State"
        value={asked.state}
        options={STATES}
        counts={states}
        onChange={(state) => ask({ state })}
      />
      <FilterSelect
        label="Kind"
        value={asked.kind}
        options={withChosen(kinds, asked.kind)}
        onChange={(kind) => ask({ kind })}
      />
      <FilterSelect label="Verdict" value={asked.grade} options={GRADES} onChange={(grade) => ask({ grade })} />
      <FilterSelect label="Gates" value={asked.gates} options={GATES} onChange={(gates) => ask({ gates })} />
      {(labels.length > 0 || asked.label) && (
        <FilterSelect
          label="Label"
          value={asked.label}
          options={withChosen(labels, asked.label)}
          onChange={(label) => ask({ label })}
        />
      )}
    </div>
  );
}

/** What the address asks for can be seen, though the server may not offer it. */
function withChosen(options: readonly string[], chosen: string | undefined): readonly string[] {
  return chosen && !options.includes(chosen) ? [chosen, ...options] : options;
}

/** What is typed is asked for when the typing rests, so that each letter is no request of its own. */
function SearchBox({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  const [text, setText] = useState(value);
  const rested = useDeferredValue(text);
  useEffect(() => {
    const timer = setTimeout(() => rested !== value && onChange(rested), 200);
    return () => clearTimeout(timer);
  }, [rested, value, onChange]);
  return (
    <input
      type="search"
      aria-label="Search experiments"
      placeholder="Search by name, id, label or person"
      value={text}
      onChange={(event) => setText(event.target.value)}
      style={{ flex: "1 1 260px", maxWidth: 420 }}
    />
  );
}

function FilterSelect<W extends string>(props: {
  label: string;
  value: W | undefined;
  options: readonly W[];
  counts?: Partial<Record<string, number>>;
  onChange: (value: W | undefined) => void;
}) {
  const { label, value, options, counts, onChange } = props;
  return (
    <select
      aria-label={label}
      value={value ?? ""}
      onChange={(event) => onChange(options.find((one) => one === event.target.value))}
    >
      <option value="">{label}: any</option>
      {options.map((one) => (
        <option key={one} value={one}>
          {describeState(one)}
          {counts?.[one] === undefined ? "" : ` (${counts[one]})`}
        </option>
      ))}
    </select>
  );
}
