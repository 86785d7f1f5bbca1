// The results so far: each job's numbers with intervals and verdicts, gates, and reasons for suspect numbers.
import { useQuery } from "@tanstack/react-query";

import type { Entry, ExperimentView, ShownResults } from "@/api/schema";
import { Card } from "@/components/layout";
import { EmptyState, QueryContent } from "@/components/states";

import { Answer, choosePictures, CurvePicture, PlotPicture } from "./Answer";
import { Gates } from "./Gates";
import { NumbersCard } from "./NumbersCard";
import { resultsQuery } from "./queries";
import { Reasons } from "./Reasons";
import { Sides } from "./Sides";
import { isOver } from "./liveExperiment";

export function Results({ view }: { view: ExperimentView }) {
  const results = useQuery(resultsQuery(view.experiment.id));
  return (
    <QueryContent query={results} what="Loading the results">
      {(data) =>
        data === null || data.entries.length === 0 ? (
          <Card>
            <EmptyState title={isOver(view) ? "Nothing was measured" : "No job has ended yet"}>
              <p>{isOver(view) ? "See the jobs for reasons." : "Numbers appear here as jobs end."}</p>
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
  const { otherCurves, otherPlots } = choosePictures(data);
  return (
    <div className="stack wide">
      <VoidBanner entries={entries} />
      {data.experiment.recipe.duet && <Sides experimentId={data.experiment.id} />}
      <Answer data={data} />
      {otherCurves.map((curve) => (
        <Card key={curve.title} title={curve.title || "Throughput and latency against load"}>
          <CurvePicture curve={curve} experimentId={data.experiment.id} />
        </Card>
      ))}
      <NumbersCard data={data} />
      <Gates
        experimentId={data.experiment.id}
        outcomes={data.gates}
        metric={columns.find((one) => one.is_headline)?.key}
      />
      {otherPlots.map((plot) => (
        <Card key={plot.title} title={plot.title}>
          <PlotPicture plot={plot} />
        </Card>
      ))}
      <Reasons entries={entries} />
    </div>
  );
}

/** Says once that numbers may not be quoted, and why. */
function VoidBanner({ entries }: { entries: readonly Entry[] }) {
  const reasons = entries.flatMap(({ summary }) => {
    if (summary.verdict.grade !== "void") return [];
    return [summary.verdict.reasons.find(({ grade }) => grade === "void")?.text ?? "no reason was recorded"];
  });
  if (reasons.length === 0) return null;
  const which = entries.length === 1 ? "Void" : `Void: ${reasons.length} of ${entries.length} jobs`;
  return (
    <p className="warning" role="status">
      <strong>{which}. Do not quote the grey numbers.</strong> {reasons[0]}
    </p>
  );
}
