// The page of one series: results with levels and changes, and the baseline.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

import type { History as OneHistory } from "@/api/schema";
import { HistoryChart } from "@/charts/HistoryChart";
import type { PickedResult } from "@/charts/options/history";
import { Badge } from "@/components/Badge";
import { SelectField } from "@/components/Field";
import { Card, Facts, Page } from "@/components/layout";
import { useMetricTitle } from "@/components/MetricName";
import { formatEstimate } from "@/components/number";
import { formatDay } from "@/components/time";
import { EmptyState, Missing, QueryContent } from "@/components/states";

import { BaselineCard } from "./BaselineCard";
import { Changes } from "./Changes";
import { ForkCard } from "./ForkCard";
import { historyQuery } from "./queries";
import { seriesTone } from "./tones";

export function History() {
  const { seriesId } = useParams({ from: "/history/$seriesId" });
  const { metric } = useSearch({ from: "/history/$seriesId" });
  const history = useQuery(historyQuery(seriesId, metric));
  const missing = (
    <Missing
      title="No such series"
      back={
        <Link to="/history" className="button">
          To all series
        </Link>
      }
    />
  );
  return (
    <QueryContent query={history} missing={missing}>
      {(found) => <HistoryPage history={found} />}
    </QueryContent>
  );
}

function HistoryPage({ history }: { history: OneHistory }) {
  const { of } = useSearch({ from: "/history/$seriesId" });
  const navigate = useNavigate({ from: "/history/$seriesId" });
  const { series } = history;
  const pick = useCallback(
    ({ experimentId }: PickedResult) => void navigate({ to: "/experiments/$experimentId", params: { experimentId } }),
    [navigate],
  );
  return (
    <Page
      title={`${series.name} over time`}
      heading={
        <>
          {series.name} <span className="muted">{series.title === series.name ? "" : series.title}</span>
        </>
      }
      about={
        <span className="row">
          <Badge tone={seriesTone(series.state)}>
            {series.state === "learning" ? `learning ${series.learned}/${series.wanted}` : series.state}
          </Badge>
          {series.branch && <>branch {series.branch} </>}on {series.machine}, {series.runs} results ·{" "}
          <Link to="/history">all series</Link>
        </span>
      }
      actions={<MetricField history={history} />}
    >
      <Card>
        <p>{history.sentence || series.note}</p>
        {history.points.length === 0 ? (
          <EmptyState title="No result yet" />
        ) : (
          <HistoryChart history={history} highlighted={of} onPick={pick} />
        )}
        <p className="muted small">
          Horizontal lines are levels with their intervals. Vertical lines are changes (dotted: suspected; grey:
          acknowledged or over). Triangles mark changes of the machine or its software. Click a result to open its
          experiment.
        </p>
      </Card>
      <div className="columns">
        <Card title="Levels">
          <Facts
            of={history.segments.map(
              (one) =>
                [
                  describeDays(history, one),
                  `${formatEstimate({
                    value: one.level.median,
                    unit: history.unit,
                    low: one.level.low ?? null,
                    high: one.level.high ?? null,
                  })}, ${one.end - one.begin} results`,
                ] as const,
            )}
          />
        </Card>
        <BaselineCard history={history} />
        {series.branch && <ForkCard history={history} />}
      </div>
      <Card title="Changes" flush>
        {history.changes.length === 0 ? <EmptyState title="No changes found" /> : <Changes of={history.changes} />}
      </Card>
    </Page>
  );
}

/** Say on which days the results of a level were measured. */
function describeDays(history: OneHistory, { first_job_id, last_job_id }: OneHistory["segments"][number]): string {
  const [first, last] = [first_job_id, last_job_id].map((id) => history.points.findIndex((one) => one.job_id === id));
  if (first === undefined || last === undefined || first < 0 || last < 0) return "–";
  // Results stand in the order of their commits, which need not be that of their days.
  const instants = history.points.slice(first, last + 1).map((one) => one.measured_at);
  const days = instants.sort().map(formatDay);
  return days[0] === days.at(-1) ? `${days[0]}` : `${days[0]} to ${days.at(-1)}`;
}

function MetricField({ history }: { history: OneHistory }) {
  const navigate = useNavigate({ from: "/history/$seriesId" });
  const titleOf = useMetricTitle();
  const labelOf = (key: string) => `${titleOf(key)}${key === history.series.metric ? " (headline)" : ""}`;
  const keys = [...new Set([history.metric, ...history.points.flatMap((point) => Object.keys(point.values))])].sort();
  return (
    <SelectField
      label="Metric"
      value={history.metric}
      options={keys.map((key) => ({ value: key, label: labelOf(key), title: key }))}
      onChange={(metric) => void navigate({ search: (before) => ({ ...before, metric }), replace: true })}
    />
  );
}
