// Shows a number with its unit, interval and verdict. All pages show numbers with this component.
import type { Estimate, Grade } from "@/api/schema";

import { GradeMark } from "./Badge";
import { DASH, describeMethod, formatEstimateParts, formatShareParts, type Scale } from "./number";

type QuantityValue = Pick<Estimate, "value" | "unit"> & Partial<Estimate>;

export function Quantity(props: {
  of: QuantityValue | null | undefined;
  scale?: Scale | undefined;
  grade?: Grade | undefined;
  big?: boolean;
  withInterval?: boolean;
  missing?: string;
  /** Write it as a percentage. */
  asShare?: boolean;
}) {
  const { of: estimate, scale, grade, big = false, withInterval = true, missing, asShare = false } = props;
  if (!estimate)
    return (
      <span className="muted" title={missing}>
        {DASH}
      </span>
    );
  const { value, unit, interval } = asShare ? formatShareParts(estimate) : formatEstimateParts(estimate, scale);
  return (
    <span
      className={["quantity", big && "big", grade === "void" && "void"].filter(Boolean).join(" ")}
      title={describeQuantity(estimate)}
    >
      {grade && grade !== "valid" && <GradeMark grade={grade} />}
      <b>{value}</b>
      {unit && <span className="unit">{unit}</span>}
      {withInterval && interval && <span className="interval">{interval}</span>}
    </span>
  );
}

function describeQuantity(estimate: QuantityValue): string | undefined {
  if (estimate.method === undefined || estimate.count === undefined) return undefined;
  return describeMethod(estimate as Estimate);
}
