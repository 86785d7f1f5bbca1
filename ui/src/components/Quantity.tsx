// The one way a number is shown: value, unit, interval and, where it is known, the verdict on it.
import type { Estimate, Grade } from "@/api/schema";

import { GradeMark } from "./Badge";
import { DASH, footnote, type Scale, written } from "./number";

type Shown = Pick<Estimate, "value" | "unit"> & Partial<Estimate>;

export function Quantity(props: {
  of: Shown | null | undefined;
  scale?: Scale | undefined;
  grade?: Grade | undefined;
  big?: boolean;
  withInterval?: boolean;
  missing?: string;
}) {
  const { of: estimate, scale, grade, big = false, withInterval = true, missing } = props;
  if (!estimate) return <span className="muted" title={missing}>{DASH}</span>;
  const { value, unit, interval } = written(estimate, scale);
  return (
    <span className={big ? "quantity big" : "quantity"} title={titleOf(estimate)}>
      {grade && grade !== "valid" && <GradeMark grade={grade} />}
      <b>{value}</b>
      {unit && <span className="unit">{unit}</span>}
      {withInterval && interval && <span className="interval">{interval}</span>}
    </span>
  );
}

function titleOf(estimate: Shown): string | undefined {
  if (estimate.method === undefined || estimate.count === undefined) return undefined;
  return footnote(estimate as Estimate);
}
