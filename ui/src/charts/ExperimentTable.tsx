// A table of experiments with their state, headline metric, trend and verdict.
import { Link, useNavigate } from "@tanstack/react-router";

import type { ExperimentRow, Headline } from "@/api/schema";
import { describeState, StateBadge, VerdictBadge } from "@/components/Badge";
import { Labels } from "@/components/layout";
import { MetricName } from "@/components/MetricName";
import { Progress, shownState } from "@/components/Progress";
import { Quantity } from "@/components/Quantity";
import { type Column, type RowSelection, type Sorting, Table } from "@/components/Table";
import { RelativeTime } from "@/components/time";

import { Sparkline } from "./Sparkline";

interface Props {
  rows: readonly ExperimentRow[];
  label: string;
  sorting?: Sorting | undefined;
  onSort?: ((sorting: Sorting) => void) | undefined;
  selection?: RowSelection<ExperimentRow> | undefined;
  onEnd?: (() => void) | undefined;
}

export function ExperimentTable(props: Props) {
  const navigate = useNavigate();
  // A column that is empty takes the place of one that is not.
  const isLabelled = props.rows.some((row) => Object.keys(row.labels).length > 0);
  const columns = isLabelled ? COLUMNS : COLUMNS.filter(({ key }) => key !== "labels");
  return (
    <Table
      {...props}
      columns={columns}
      keyOf={(row) => row.id}
      rowHeight={53}
      maxHeight="calc(100vh - 250px)"
      onPick={(row) => void navigate({ to: "/experiments/$experimentId", params: { experimentId: row.id } })}
    />
  );
}

const COLUMNS: readonly Column<ExperimentRow>[] = [
  {
    key: "name",
    heading: "Experiment",
    sort: "name",
    cell: (row) => (
      <div className="named">
        <Link to="/experiments/$experimentId" params={{ experimentId: row.id }}>
          {row.name}
        </Link>
        <span className="muted small">
          <span className="mono">{row.id}</span> · {row.kind}
        </span>
      </div>
    ),
  },
  { key: "state", heading: "State", cell: (row) => <ExperimentStatus row={row} /> },
  {
    key: "headline",
    heading: "Headline",
    sort: "value",
    end: true,
    cell: (row) => <HeadlineQuantity of={row.headline} />,
  },
  {
    key: "trend",
    heading: "Trend",
    cell: (row) =>
      row.trend.length > 1 ? (
        <Sparkline values={row.trend} label={`the last ${row.trend.length} results of ${row.name}`} />
      ) : null,
  },
  {
    key: "verdict",
    heading: "Verdict",
    cell: (row) => (
      <span className="row" style={{ flexWrap: "nowrap" }}>
        {row.grade && <VerdictBadge grade={row.grade} />}
        {row.gates && row.gates !== "passed" && (
          <StateBadge of={row.gates === "failed" ? "fail" : row.gates} title={`gates: ${describeState(row.gates)}`} />
        )}
      </span>
    ),
  },
  { key: "labels", heading: "Labels", cell: (row) => <Labels of={row.labels} /> },
  {
    key: "created",
    heading: "Submitted",
    sort: "created",
    end: true,
    cell: (row) => (
      <span className="small">
        <RelativeTime at={row.created_at} />
      </span>
    ),
  },
];

function ExperimentStatus({ row }: { row: ExperimentRow }) {
  if (row.state !== "running" && row.state !== "pending") return <StateBadge of={row.state} />;
  return (
    <div className="standing">
      <StateBadge of={shownState(row.state, row.counts)} />
      <Progress counts={row.counts} total={row.job_count} />
    </div>
  );
}

export function HeadlineQuantity({ of: headline }: { of: Headline | null | undefined }) {
  if (!headline) return <span className="muted">–</span>;
  return (
    <div className="named" title={`${headline.title}: ${headline.metric}`}>
      <Quantity of={headline} />
      <span className="muted small">
        <MetricName of={headline.metric} />
      </span>
    </div>
  );
}
