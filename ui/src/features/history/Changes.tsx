// A list of changes with their size, explanation and details, and a button to acknowledge each.
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import type { Change } from "@/api/schema";
import { Badge } from "@/components/Badge";
import { Facts } from "@/components/layout";
import { MetricName, useMetricTitle } from "@/components/MetricName";
import { DASH, formatEstimate, formatValue } from "@/components/number";
import { ResultLink } from "@/components/ResultLink";
import { RelativeTime } from "@/components/time";

import { AcknowledgeDialog } from "./AcknowledgeDialog";
import { changeTone, formatChangeSize } from "./tones";

const OPEN: readonly Change["state"][] = ["suspect", "found", "confirmed"];

export function Changes({ of: changes, withSeries = false }: { of: readonly Change[]; withSeries?: boolean }) {
  return (
    <ul className="lines">
      {changes.map((change) => (
        <ChangeItem key={change.id} of={change} withSeries={withSeries} />
      ))}
    </ul>
  );
}

function ChangeItem({ of: change, withSeries }: { of: Change; withSeries: boolean }) {
  const [asked, setAsked] = useState(false);
  const client = useQueryClient();
  const titleOf = useMetricTitle();
  const close = (): void => {
    setAsked(false);
    for (const key of ["changes", "series", "overview"]) void client.invalidateQueries({ queryKey: [key] });
  };
  return (
    <li>
      <div className="row spread">
        <span className="row">
          <Badge tone={changeTone(change)}>
            {change.kind}, {change.state}
          </Badge>
          <b>{formatChangeSize(change.effect, change.low, change.high)}</b>
          {withSeries && (
            <Link
              to="/history/$seriesId"
              params={{ seriesId: change.series_id }}
              search={{ metric: change.metric, of: change.experiment_id }}
            >
              {change.name} <span className="muted">{change.title}</span>
              {change.branch && `, branch ${change.branch},`} on {change.machine}
            </Link>
          )}
          <span className="muted small">
            noticed <RelativeTime at={change.noticed_at} />
          </span>
        </span>
        {OPEN.includes(change.state) && (
          <button type="button" className="button slim" onClick={() => setAsked(true)}>
            Acknowledge
          </button>
        )}
      </div>
      <p>{change.sentence}</p>
      {change.acknowledgement && (
        <p className="muted">
          Known{change.acknowledgement.expected ? ", and expected" : ""}:{" "}
          {change.acknowledgement.reason || "no reason given"} ({change.acknowledgement.who})
        </p>
      )}
      <details>
        <summary>Details</summary>
        <Facts of={listFacts(change, titleOf)} />
      </details>
      {asked && <AcknowledgeDialog change={change} onClose={close} />}
    </li>
  );
}

function listFacts(change: Change, titleOf: (key: string) => string) {
  const { noise, unit } = change;
  const formatLevel = (one: Change["before"]) =>
    formatEstimate({ value: one.median, unit, low: one.low ?? null, high: one.high ?? null });
  return [
    ["Metric", <MetricName key="metric" of={change.metric} />],
    ["Before", `${formatLevel(change.before)}, ${change.before.runs} results`],
    ["After", `${formatLevel(change.after)}, ${change.after.runs} results`],
    ["First result after it", <ResultLink key="result" of={change} />],
    ["Commits", change.commits.map((one) => one?.slice(0, 10) ?? DASH).join(" → ")],
    ["p", change.p == null ? DASH : String(Number(change.p.toPrecision(2)))],
    [
      "Noise before",
      [noise.grade, noise.cv == null ? "" : `${(noise.cv * 100).toPrecision(2)} %`].filter(Boolean).join(", ") || DASH,
    ],
    ["What else changed", change.facts.join("; ") || "nothing known"],
    [
      "Other metrics",
      Object.entries(change.beside)
        .map(([key, moved]) => `${titleOf(key)} ${formatChangeSize(moved)}`)
        .join("; ") || DASH,
    ],
    ["How it was found", change.path.join("; ") || DASH],
    ...(change.settle ? [["What would decide it", change.settle] as const] : []),
    ["Smallest detectable change", noise.sees == null ? DASH : `${formatValue(noise.sees * 100, "1", 2)} %`],
  ] as const;
}
