// The table of every job's numbers, whose columns the reader chooses among all metrics that any job has.
import { getRouteApi, Link } from "@tanstack/react-router";

import type { Entry, Estimate, ResultColumn, ShownResults } from "@/api/schema";
import { StateBadge, VerdictBadge } from "@/components/Badge";
import { Card } from "@/components/layout";
import { useMetricTitle } from "@/components/MetricName";
import { chooseScale } from "@/components/number";
import { Quantity } from "@/components/Quantity";
import { splitNames } from "@/components/search";
import { type Column, Table } from "@/components/Table";

// What fits on a screen.
const USUAL_COLUMNS = 5;
const route = getRouteApi("/experiments/$experimentId");

type ShownColumn = Pick<ResultColumn, "key" | "label" | "better" | "format">;

export function NumbersCard({ data }: { data: ShownResults }) {
  const { columns: asked } = route.useSearch();
  const titleOf = useMetricTitle();
  const all = listColumns(data, titleOf);
  const chosen = chooseColumns(all, data.columns, asked);
  return (
    <Card title="Numbers" actions={<ColumnChooser all={all} chosen={chosen} />} flush>
      <div className="stacked">
        <Table
          rows={data.entries}
          columns={buildColumns(data.entries, chosen)}
          keyOf={(entry) => entry.job.id}
          label="Numbers of every job"
          rowHeight={56}
        />
      </div>
    </Card>
  );
}

/** The columns that the server names come first, then every other metric that a job has. */
function listColumns(data: ShownResults, titleOf: (key: string) => string): ShownColumn[] {
  const known = new Set(data.columns.map(({ key }) => key));
  const others = new Set(data.entries.flatMap(({ summary }) => Object.keys(summary.estimates)));
  const rest = [...others].filter((key) => !known.has(key)).sort();
  return [
    ...data.columns,
    ...rest.map((key): ShownColumn => ({ key, label: titleOf(key), better: "neither", format: "number" })),
  ];
}

function chooseColumns(all: readonly ShownColumn[], usual: readonly ResultColumn[], asked: string | undefined) {
  const keys = asked === undefined ? usual.slice(0, USUAL_COLUMNS).map(({ key }) => key) : splitNames(asked);
  return all.filter(({ key }) => keys.includes(key));
}

function ColumnChooser({ all, chosen }: { all: readonly ShownColumn[]; chosen: readonly ShownColumn[] }) {
  const navigate = route.useNavigate();
  const keys = new Set(chosen.map(({ key }) => key));
  const toggle = (key: string) => {
    const next = all.filter((one) => (one.key === key ? !keys.has(key) : keys.has(one.key)));
    const columns = next.map((one) => one.key).join(",");
    void navigate({ search: (before) => ({ ...before, columns }), replace: true });
  };
  return (
    <details className="chooser">
      <summary>
        Columns: {chosen.length} of {all.length}
      </summary>
      <fieldset aria-label="Columns">
        {all.map(({ key, label }) => (
          <label key={key} title={key}>
            <input type="checkbox" checked={keys.has(key)} onChange={() => toggle(key)} />
            {label}
          </label>
        ))}
      </fieldset>
    </details>
  );
}

function buildColumns(entries: readonly Entry[], columns: readonly ShownColumn[]): Column<Entry>[] {
  const first: Column<Entry> = {
    key: "title",
    heading: "Job",
    cell: ({ job, summary, result }) => (
      <Link from="/experiments/$experimentId" search={(before) => ({ ...before, part: "samples", job: job.id })}>
        {summary.title || result.job_id}
      </Link>
    ),
  };
  const verdict: Column<Entry> = {
    key: "verdict",
    heading: "Verdict",
    cell: ({ summary, result }) => (
      <span className="row">
        <VerdictBadge
          grade={summary.verdict.grade}
          title={summary.verdict.reasons.map((reason) => reason.text).join("\n")}
        />
        {result.state !== "complete" && <StateBadge of={result.state} title={result.failure?.message} />}
      </span>
    ),
  };
  return [first, verdict, ...columns.map((one) => buildNumberColumn(one, entries))];
}

function buildNumberColumn({ key, label, better, format }: ShownColumn, entries: readonly Entry[]): Column<Entry> {
  const found = entries.flatMap(({ summary }): Estimate[] => {
    const estimate = summary.estimates[key];
    return estimate ? [estimate] : [];
  });
  const scale = chooseScale(found);
  return {
    key,
    heading: <span title={better === "neither" ? key : `${key}, ${better} is better`}>{label}</span>,
    end: true,
    // The verdict stands in its own column: a mark in every cell would only be noise.
    cell: ({ summary }) => (
      <span className={summary.verdict.grade === "void" ? "greyed" : undefined}>
        <Quantity of={summary.estimates[key]} scale={scale} asShare={format === "share"} />
      </span>
    ),
  };
}
