// The results so far: each job's numbers with intervals and verdicts, gates, and reasons for suspect numbers.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import type { Entry, Estimate, ExperimentView, ResultColumn, ShownResults } from "@/api/schema";
import { JobPlotChart } from "@/charts/JobPlotChart";
import { SweepChart } from "@/charts/SweepChart";
import { StateBadge, VerdictBadge } from "@/components/Badge";
import { Card } from "@/components/layout";
import { chooseScale } from "@/components/number";
import { Quantity } from "@/components/Quantity";
import { EmptyState, QueryContent } from "@/components/states";
import { type Column, Table } from "@/components/Table";

import { Gates } from "./Gates";
import { resultsQuery } from "./queries";
import { Reasons } from "./Reasons";
import { Sides } from "./Sides";
import { isOver } from "./liveExperiment";

// What does not fit on a screen beside the others is in the reports.
const MOST_COLUMNS = 5;
const MOST_HEADLINES = 4;

export function Results({ view }: { view: ExperimentView }) {
  const results = useQuery(resultsQuery(view.experiment.id));
  return (
    <QueryContent query={results} what="Asking for the numbers">
      {(data) =>
        data === null || data.entries.length === 0 ? (
          <Card>
            <EmptyState title={isOver(view) ? "Nothing was measured" : "No job has ended yet"}>
              <p>{isOver(view) ? "The jobs tell why." : "Numbers appear here as jobs end."}</p>
            </EmptyState>
          </Card>
        ) : (
          <Numbers data={data} />
        )
      }
    </QueryContent>
  );
}

function Numbers({ data }: { data: ShownResults }) {
  const { entries, columns } = data;
  return (
    <div className="stack wide">
      {entries.length === 1 && entries[0] && <Headlines entry={entries[0]} columns={columns} />}
      {data.experiment.recipe.duet && <Sides experimentId={data.experiment.id} />}
      <Card title="Numbers" flush>
        <Table
          rows={entries}
          columns={buildColumns(entries, columns.slice(0, MOST_COLUMNS))}
          keyOf={(entry) => entry.job.id}
          label="Numbers of every job"
          rowHeight={44}
        />
      </Card>
      <Gates
        experimentId={data.experiment.id}
        outcomes={data.gates}
        metric={columns.find((one) => one.is_headline)?.key}
      />
      {data.sweep?.curves.map((curve, index) => (
        <Card
          key={index}
          title={curve.title || "Throughput and latency against load"}
          actions={
            <Link to="/load" search={{ ids: data.experiment.id }}>
              Knee, limits and bottleneck
            </Link>
          }
        >
          <SweepChart curve={curve} />
        </Card>
      ))}
      {data.plots.map((plot) => (
        <Card key={plot.title} title={plot.title}>
          <JobPlotChart plot={plot} />
          {plot.notes.map((note) => (
            <p key={note} className="muted small">
              {note}
            </p>
          ))}
        </Card>
      ))}
      <Reasons entries={entries} />
    </div>
  );
}

function Headlines({ entry, columns }: { entry: Entry; columns: readonly ResultColumn[] }) {
  return (
    <div className="headlines">
      {columns.slice(0, MOST_HEADLINES).map(({ key, label, format }) => (
        <div key={key} className="card">
          <div className="body">
            <div className="muted small">{label}</div>
            <Quantity
              of={entry.summary.estimates[key]}
              grade={entry.summary.verdict.grade}
              asShare={format === "share"}
              big
            />
          </div>
        </div>
      ))}
    </div>
  );
}

function buildColumns(entries: readonly Entry[], columns: readonly ResultColumn[]): Column<Entry>[] {
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

function buildNumberColumn({ key, label, better, format }: ResultColumn, entries: readonly Entry[]): Column<Entry> {
  const found = entries.flatMap(({ summary }): Estimate[] => {
    const estimate = summary.estimates[key];
    return estimate ? [estimate] : [];
  });
  const scale = chooseScale(found);
  return {
    key,
    heading: <span title={better === "neither" ? key : `${key}, ${better} is better`}>{label}</span>,
    end: true,
    cell: ({ summary }) => <Quantity of={summary.estimates[key]} scale={scale} asShare={format === "share"} />,
  };
}
