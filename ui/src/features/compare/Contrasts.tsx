// A table of the metrics of one match: both numbers, the change with its interval, the conclusion and its reason.
import { useMemo, useState } from "react";

import type { Contrast } from "@/api/schema";
import { Badge, stateTone } from "@/components/Badge";
import { useMetricTitle } from "@/components/MetricName";
import { chooseScale } from "@/components/number";
import { Quantity } from "@/components/Quantity";

import { explainChange, formatEffect } from "./effect";
import { EffectStrip } from "./EffectStrip";
import { chooseReach } from "./strip";

export function Contrasts({
  contrasts,
  threshold,
  label,
}: {
  contrasts: readonly Contrast[];
  threshold: number;
  label: string;
}) {
  const [all, setAll] = useState(false);
  const headlines = contrasts.filter((one) => one.role === "headline");
  const shown = all || headlines.length === 0 ? contrasts : headlines;
  const within = useMemo(
    () =>
      chooseReach(
        contrasts.flatMap((one) => one.effect ?? []),
        threshold,
      ),
    [contrasts, threshold],
  );
  const more = contrasts.length - headlines.length;
  const about = explainChange(contrasts);
  return (
    <>
      <div className="scroll stacked contrasts" tabIndex={0} role="region" aria-label={label}>
        <table>
          <thead>
            <tr>
              <th scope="col">Metric</th>
              <th scope="col">Conclusion</th>
              <th scope="col" className="end">
                Baseline
              </th>
              <th scope="col" className="end">
                Candidate
              </th>
              <th scope="col" className="end" title={about}>
                Change
              </th>
              <th scope="col" style={{ width: "22%" }} title="the band shows changes too small to matter">
                Interval
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((one) => (
              <ContrastRow key={one.key} of={one} within={within} threshold={threshold} />
            ))}
          </tbody>
        </table>
      </div>
      {about && <p className="body muted small">{about}</p>}
      {headlines.length > 0 && more > 0 && (
        <div className="body">
          <button type="button" className="button quiet slim" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? "Show only metrics that decide" : `Show ${more} more ${more === 1 ? "metric" : "metrics"}`}
          </button>
        </div>
      )}
    </>
  );
}

function ContrastRow({ of: one, within, threshold }: { of: Contrast; within: number; threshold: number }) {
  const formatted = one.effect ? formatEffect(one.effect) : null;
  const scale = chooseScale([one.baseline, one.candidate].flatMap((estimate) => estimate ?? []));
  const tone = stateTone(one.conclusion);
  const title = useMetricTitle()(one.key);
  return (
    <tr className={one.role === "headline" ? undefined : "dim"}>
      <th scope="row" title={one.key}>
        {title}
      </th>
      <td>
        <details className="why">
          <summary>
            <Badge tone={tone} title={formatted?.chance ? `p ${formatted.chance}` : undefined}>
              {one.conclusion}
            </Badge>
          </summary>
          <p className="small">{one.sentence}</p>
        </details>
      </td>
      <td className="end">
        <Quantity of={one.baseline} scale={scale} />
      </td>
      <td className="end">
        <Quantity of={one.candidate} scale={scale} />
      </td>
      <td className="end">
        {formatted === null ? (
          <span className="muted">–</span>
        ) : (
          <span className="quantity">
            <b className={`ink-${tone}`}>{formatted.change}</b>
            <span className="interval">{formatted.interval}</span>
          </span>
        )}
      </td>
      <td>
        {one.effect && formatted && (
          <EffectStrip
            effect={one.effect}
            within={within}
            threshold={threshold}
            tone={tone}
            label={`${title}: ${formatted.change} ${formatted.interval}`}
          />
        )}
      </td>
    </tr>
  );
}
