// The load page: throughput and latency against load, where it saturates and why, and loads that are running.
import "./load.css";

import { queryOptions, useQuery, type UseQueryResult } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";

import { api, ApiError, readBody } from "@/api/client";
import { kindsQuery } from "@/api/queries";
import type { KindCard, SweepReport } from "@/api/schema";
import { ExperimentPicker } from "@/components/ExperimentPicker";
import { DeferredTextField } from "@/components/Field";
import { Card, Page } from "@/components/layout";
import { splitNames } from "@/components/search";
import { EmptyState, QueryContent } from "@/components/states";
import { RelativeTime } from "@/components/time";

import { CurveCard } from "./CurveCard";
import { LoadRuns } from "./LoadRuns";

const route = getRouteApi("/load");

function sweepQuery(ids: string, slo: string | undefined) {
  return queryOptions({
    queryKey: ["sweep", ids, slo ?? ""],
    queryFn: ({ signal }) =>
      readBody(api.GET("/api/v1/sweep", { params: { query: { ids, ...(slo ? { slo } : {}) } }, signal })),
    enabled: ids !== "",
    retry: false,
  });
}

/** The newest experiments of these kinds, to choose from. */
function loadsQuery(kinds: readonly KindCard[]) {
  const kind = kinds.map((one) => one.name).join(",");
  return queryOptions({
    queryKey: ["listing", "loads", kind],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/listing", { params: { query: { kind, limit: 30 } }, signal })),
    enabled: kind !== "",
  });
}

export function Load() {
  const { ids = "", slo } = route.useSearch();
  const navigate = route.useNavigate();
  const chosen = splitNames(ids);
  const kinds = (useQuery(kindsQuery()).data?.items ?? []).filter((one) => one.has_load);
  const loads = useQuery(loadsQuery(kinds));
  const sweep = useQuery(sweepQuery(ids, slo));
  const running = (loads.data?.items ?? []).filter(
    (one) => chosen.includes(one.id) && (one.state === "running" || one.state === "pending"),
  );
  const choose = (next: readonly string[]): void =>
    void navigate({ search: (now) => ({ ...now, ids: next.join(",") || undefined }) });
  return (
    <Page
      title="Load"
      about="Where a server saturates, which load still meets the limits, and what the bottleneck was."
    >
      <Card label="Choice">
        <div className="stack">
          <ExperimentPicker label="Experiments with a load" chosen={chosen} onChange={choose} />
          <DeferredTextField
            label="Limits instead of the recipe's"
            value={slo ?? ""}
            placeholder="e2e_ms.p99=200, ttft_ms.p99=500"
            onChange={(next) => void navigate({ search: (now) => ({ ...now, slo: next || undefined }) })}
          />
        </div>
      </Card>
      {chosen.length === 0 && (
        <Card title="Newest loads" flush>
          <QueryContent query={loads}>
            {({ items }) =>
              items.length === 0 ? (
                <NoLoad kinds={kinds} />
              ) : (
                <ul className="lines">
                  {items.map((one) => (
                    <li key={one.id}>
                      <span className="row">
                        <button type="button" className="button slim" onClick={() => choose([one.id])}>
                          {one.name}
                        </button>
                        <span className="mono muted">{one.id}</span> {one.job_count} jobs, {one.state},{" "}
                        <RelativeTime at={one.created_at} />
                      </span>
                    </li>
                  ))}
                </ul>
              )
            }
          </QueryContent>
        </Card>
      )}
      {chosen.map((id) => (
        <LoadRuns key={id} experimentId={id} />
      ))}
      {chosen.length > 0 && <Curves sweep={sweep} ids={chosen} isRunning={running.length > 0} />}
    </Page>
  );
}

function NoLoad({ kinds }: { kinds: readonly KindCard[] }) {
  const example = kinds.find((one) => one.example !== "")?.example;
  return (
    <EmptyState
      title="No load yet"
      actions={
        <Link to="/run" search={example ? { example } : {}} className="button primary">
          Load a server
        </Link>
      }
    >
      <p>
        A recipe whose workload is of kind <span className="mono">{kinds.map((one) => one.name).join(" or ")}</span>{" "}
        loads a server; several levels of load make a curve.
      </p>
    </EmptyState>
  );
}

function Curves({
  sweep,
  ids,
  isRunning,
}: {
  sweep: UseQueryResult<SweepReport>;
  ids: readonly string[];
  isRunning: boolean;
}) {
  if (sweep.data === undefined && isNoSweep(sweep.error))
    return <NoCurve ids={ids} isRunning={isRunning} reason={sweep.error.message} />;
  return (
    <QueryContent query={sweep} what="Analysing the loads">
      {(report) => (
        <>
          {report.curves.map((curve) => (
            <CurveCard key={curve.title} curve={curve} />
          ))}
          <p className="muted small">
            A knee is where more load brings less than {Math.round(report.gain_share * 100)} % of what it brought at
            first.
          </p>
        </>
      )}
    </QueryContent>
  );
}

function isNoSweep(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === "no_sweep";
}

/** One level makes no curve, and some jobs have none; what they measured is on their own pages. */
function NoCurve({ ids, isRunning, reason }: { ids: readonly string[]; isRunning: boolean; reason: string }) {
  const said = `${reason.charAt(0).toUpperCase()}${reason.slice(1)}`;
  return (
    <Card>
      <EmptyState title={isRunning ? "The curve appears with the second level" : said}>
        <p>
          {isRunning
            ? "Each level adds a point when it ends."
            : "Choose another experiment with a different load, or run a recipe with several levels."}
        </p>
        <p className="row">
          {ids.map((id) => (
            <Link key={id} to="/experiments/$experimentId" params={{ experimentId: id }} className="mono">
              {id}
            </Link>
          ))}
        </p>
      </EmptyState>
    </Card>
  );
}
