// The calibrations of an agent's machine: the newest, and those that its results were measured with.
import type { Calibration } from "@/api/schema";
import { Badge } from "@/components/Badge";
import { formatEstimate } from "@/components/number";
import { EmptyState } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { formatInstant } from "@/components/time";

function readFigure(one: Calibration, name: string): string {
  const figure = one.figures[name];
  return figure ? formatEstimate(figure) : "–";
}

const COLUMNS: readonly Column<Calibration>[] = [
  { key: "at", heading: "Taken", cell: (one) => formatInstant(one.taken_at) },
  { key: "class", heading: "Noise class", cell: (one) => one.noise_class ?? "–" },
  { key: "kernel", heading: "Fixed kernel", end: true, cell: (one) => readFigure(one, "kernel_ms") },
  { key: "noise", heading: "Its noise", end: true, cell: (one) => readFigure(one, "kernel_noise") },
  { key: "harness", heading: "Harness overhead", end: true, cell: (one) => readFigure(one, "harness_overhead_us") },
  {
    key: "state",
    heading: "Usable",
    cell: (one) =>
      one.disturbed.length > 0 ? (
        <Badge tone="warn" title={one.disturbed.join("; ")}>
          no: disturbed
        </Badge>
      ) : (
        <Badge tone="good">yes</Badge>
      ),
  },
];

export function Calibrations({ calibrations }: { calibrations: readonly Calibration[] }) {
  if (calibrations.length === 0)
    return (
      <EmptyState title="Not calibrated yet">
        <p>
          On the machine, with the agent&apos;s home and while it is drained: <code>prony calibrate</code>. Later
          results then state the machine&apos;s noise.
        </p>
      </EmptyState>
    );
  return <Table rows={[...calibrations].reverse()} columns={COLUMNS} keyOf={(one) => one.id} label="Calibrations" />;
}
