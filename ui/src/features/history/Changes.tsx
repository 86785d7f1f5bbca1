// Changes in, a list out: what each is, one sentence that says it, what else is known of it, and a way to say "known".
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import type { Change } from "@/api/schema";
import { Badge } from "@/components/Badge";
import { Facts } from "@/components/layout";
import { DASH, plain, text } from "@/components/number";
import { Ago } from "@/components/time";

import { AckDialog } from "./AckDialog";
import { effectText, toneOfChange } from "./tones";

const OPEN: readonly Change["state"][] = ["suspect", "found", "confirmed"];

export function Changes({ of: changes, withSeries = false }: { of: readonly Change[]; withSeries?: boolean }) {
  return (
    <ul className="lines">
      {changes.map((change) => (
        <Line key={change.id} of={change} withSeries={withSeries} />
      ))}
    </ul>
  );
}

function Line({ of: change, withSeries }: { of: Change; withSeries: boolean }) {
  const [asked, setAsked] = useState(false);
  const client = useQueryClient();
  const close = (): void => {
    setAsked(false);
    for (const key of ["changes", "series", "overview"]) void client.invalidateQueries({ queryKey: [key] });
  };
  return (
    <li>
      <div className="row spread">
        <span className="row">
          <Badge tone={toneOfChange(change)}>
            {change.kind}, {change.state}
          </Badge>
          <b>{effectText(change.effect, change.low, change.high)}</b>
          {withSeries && (
            <Link to="/history/$seriesId" params={{ seriesId: change.series_id }} search={{ metric: change.metric, of: change.experiment_id }}>
              {change.name} <span className="muted">{change.title}</span> on {change.machine}
            </Link>
          )}
          <span className="muted small">
            noticed <Ago at={change.noticed_at} />
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
          Known{change.acknowledgement.expected ? ", and expected" : ""}: {change.acknowledgement.reason || "no reason given"} ({change.acknowledgement.who})
        </p>
      )}
      <details>
        <summary>All that is known of it</summary>
        <Facts of={factsOf(change)} />
      </details>
      {asked && <AckDialog change={change} onClose={close} />}
    </li>
  );
}

function factsOf(change: Change) {
  const { noise, unit } = change;
  const level = (one: Change["before"]) => text({ value: one.median, unit, low: one.low ?? null, high: one.high ?? null });
  return [
    ["Metric", <span key="metric" className="mono">{change.metric}</span>],
    ["Before", `${level(change.before)}, ${change.before.runs} results`],
    ["After", `${level(change.after)}, ${change.after.runs} results`],
    ["First result after it", <Result key="result" of={change} />],
    ["Commits", change.commits.map((one) => one?.slice(0, 10) ?? DASH).join(" → ")],
    ["p", change.p == null ? DASH : String(Number(change.p.toPrecision(2)))],
    ["Noise before", [noise.grade, noise.cv == null ? "" : `${(noise.cv * 100).toPrecision(2)} %`].filter(Boolean).join(", ") || DASH],
    ["What else changed", change.facts.join("; ") || "nothing that is known"],
    ["Other metrics", Object.entries(change.beside).map(([key, moved]) => `${key} ${effectText(moved)}`).join("; ") || DASH],
    ["How it was found", change.path.join("; ") || DASH],
    ...(change.settle ? [["What would settle it", change.settle] as const] : []),
    ["Smallest change seen", noise.sees == null ? DASH : `${plain(noise.sees * 100, "1", 2)} %`],
  ] as const;
}

function Result({ of: change }: { of: Change }) {
  return (
    <Link to="/experiments/$experimentId" params={{ experimentId: change.experiment_id }} className="mono">
      {change.job_id}
    </Link>
  );
}
