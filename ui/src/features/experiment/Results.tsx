// What was measured so far: every job's numbers with intervals and verdicts, the gates, and why a number is not to be quoted.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import type { Entry, Estimate, ExperimentData, ExperimentView } from "@/api/schema";
import { SweepChart } from "@/charts/SweepChart";
import { State, Verdict } from "@/components/Badge";
import { Card } from "@/components/layout";
import { commonScale } from "@/components/number";
import { Quantity } from "@/components/Quantity";
import { Empty, Shown } from "@/components/states";
import { type Column, Table } from "@/components/Table";

import { columnsOf, headingOf } from "./columns";
import { Gates } from "./Gates";
import { resultsQuery } from "./queries";
import { Reasons } from "./Reasons";
import { Sides } from "./Sides";
import { isOver } from "./watched";

export function Results({ view }: { view: ExperimentView }) {
  const results = useQuery(resultsQuery(view.experiment.id));
  return (
    <Shown query={results} what="Asking for the numbers">
      {(dossier) =>
        dossier === null || dossier.entries.length === 0 ? (
          <Card>
            <Empty title={isOver(view) ? "Nothing was measured" : "No job has ended yet"}>
              <p>{isOver(view) ? "The jobs tell why." : "Numbers appear here as jobs end."}</p>
            </Empty>
          </Card>
        ) : (
          <Numbers dossier={dossier} />
        )
      }
    </Shown>
  );
}

function Numbers({ dossier }: { dossier: ExperimentData }) {
  const { entries } = dossier;
  return (
    <div className="stack wide">
      {entries.length === 1 && entries[0] && <Headlines entry={entries[0]} />}
      {dossier.experiment.recipe.duet && <Sides experimentId={dossier.experiment.id} />}
      <Card title="Numbers" flush>
        <Table rows={entries} columns={tableOf(entries)} keyOf={(entry) => entry.job.id} label="Numbers of every job" rowHeight={44} />
      </Card>
      <Gates experimentId={dossier.experiment.id} outcomes={dossier.gates} />
      {dossier.sweep?.curves.map((curve, index) => (
        <Card
          key={index}
          title={curve.title || "Throughput and latency against load"}
          actions={<Link to="/load" search={{ ids: dossier.experiment.id }}>Knee, limits and bottleneck</Link>}
        >
          <SweepChart curve={curve} />
        </Card>
      ))}
      <Reasons entries={entries} />
    </div>
  );
}

function Headlines({ entry }: { entry: Entry }) {
  const keys = columnsOf([entry]).slice(0, 4);
  return (
    <div className="headlines">
      {keys.map((key) => (
        <div key={key} className="card">
          <div className="body">
            <div className="muted small">{headingOf(key)}</div>
            <Quantity of={entry.summary.estimates[key]} grade={entry.summary.verdict.grade} big />
          </div>
        </div>
      ))}
    </div>
  );
}

function tableOf(entries: readonly Entry[]): Column<Entry>[] {
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
        <Verdict grade={summary.verdict.grade} title={summary.verdict.reasons.map((reason) => reason.text).join("\n")} />
        {result.state !== "complete" && <State of={result.state} title={result.failure?.message} />}
      </span>
    ),
  };
  return [first, verdict, ...columnsOf(entries).map((key) => numbers(key, entries))];
}

function numbers(key: string, entries: readonly Entry[]): Column<Entry> {
  const found = entries.flatMap(({ summary }): Estimate[] => {
    const estimate = summary.estimates[key];
    return estimate ? [estimate] : [];
  });
  const scale = commonScale(found);
  return {
    key,
    heading: headingOf(key),
    end: true,
    cell: ({ summary }) => <Quantity of={summary.estimates[key]} scale={scale} />,
  };
}
