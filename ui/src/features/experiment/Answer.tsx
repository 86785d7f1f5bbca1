// What the experiment found, in a few sentences and one picture.
import { Link } from "@tanstack/react-router";

import type { Curve, JobPlot, ShownResults } from "@/api/schema";
import { JobPlotChart } from "@/charts/JobPlotChart";
import { SweepChart } from "@/charts/SweepChart";
import { Card } from "@/components/layout";

import { Bars, findBars } from "./Bars";
import { HeadlineCards, findHeadlines } from "./HeadlineCards";

// Decode and prefill stand side by side.
const MOST_PLOTS = 2;

/** What is drawn of an experiment: first what answers it, and what is left for below. */
interface Pictures {
  curve: Curve | undefined;
  plots: readonly JobPlot[];
  otherCurves: readonly Curve[];
  otherPlots: readonly JobPlot[];
}

export function choosePictures(data: ShownResults): Pictures {
  const [curve, ...otherCurves] = data.sweep?.curves ?? [];
  const [first] = data.plots;
  const plots = curve || !first ? [] : data.plots.filter((one) => one.x_title === first.x_title).slice(0, MOST_PLOTS);
  return { curve, plots, otherCurves, otherPlots: data.plots.filter((one) => !plots.includes(one)) };
}

export function Answer({ data }: { data: ShownResults }) {
  const { curve, plots } = choosePictures(data);
  const column = data.columns.find((one) => one.is_headline);
  const bars = curve || plots.length > 0 || !column ? [] : findBars(data.entries, column.key);
  const headlines = curve || plots.length > 0 || bars.length > 0 ? [] : findHeadlines(data);
  const isDrawn = curve !== undefined || plots.length + bars.length + headlines.length > 0;
  if (data.answers.length === 0 && !isDrawn) return null;
  return (
    <Card label="Answer">
      <div className="stack">
        {data.answers.map((sentence) => (
          <p key={sentence} className="answer">
            {sentence}
          </p>
        ))}
        {data.answers.length === 0 && <p className="answer">{describeNoAnswer(data)}</p>}
        {curve && <CurvePicture curve={curve} experimentId={data.experiment.id} />}
        {plots.length > 0 && (
          <div className="answer-plots">
            {plots.map((plot) => (
              <PlotPicture key={plot.title} plot={plot} isTitled={plots.length > 1} />
            ))}
          </div>
        )}
        {column && <Bars bars={bars} column={column} />}
        <HeadlineCards of={headlines} />
      </div>
    </Card>
  );
}

/** While jobs still run, what is missing may come. */
function describeNoAnswer({ experiment, entries }: ShownResults): string {
  const isVoid = entries.every(({ summary }) => summary.verdict.grade === "void");
  if (experiment.ended_at == null)
    return isVoid ? "No answer yet: every result so far is void." : "No job can be called the fastest yet.";
  return isVoid ? "No answer: every result is void." : "No job can be called the fastest.";
}

export function CurvePicture({ curve, experimentId }: { curve: Curve; experimentId: string }) {
  return (
    <>
      <SweepChart curve={curve} />
      <Link to="/load" search={{ ids: experimentId }}>
        Knee, limits and bottleneck
      </Link>
    </>
  );
}

export function PlotPicture({ plot, isTitled = false }: { plot: JobPlot; isTitled?: boolean }) {
  return (
    <div>
      {isTitled && <h3>{plot.title}</h3>}
      <JobPlotChart plot={plot} />
      {plot.notes.map((note) => (
        <p key={note} className="muted small">
          {note}
        </p>
      ))}
    </div>
  );
}
