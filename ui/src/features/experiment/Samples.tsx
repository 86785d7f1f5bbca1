// The figures of a job's samples, as the sections of its kind name them; and the counters of the machine.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import type { JobSections, SectionFigure } from "@/api/schema";
import { DistributionChart } from "@/charts/DistributionChart";
import { LinesChart } from "@/charts/LinesChart";
import { StartsChart } from "@/charts/StartsChart";
import { TelemetryChart } from "@/charts/TelemetryChart";
import { TimelineChart } from "@/charts/TimelineChart";
import { Card } from "@/components/layout";
import { formatCount } from "@/components/number";
import { EmptyState, QueryContent } from "@/components/states";

import { JobChooser } from "./JobChooser";
import { countersQuery, distributionQuery, linesQuery, sectionsQuery, startsQuery, timelineQuery } from "./queries";

const route = getRouteApi("/experiments/$experimentId");

interface JobProps {
  experimentId: string;
  jobId: string;
}

export function Samples({ experimentId }: { experimentId: string }) {
  return (
    <JobChooser experimentId={experimentId}>
      {(jobId) => <Figures experimentId={experimentId} jobId={jobId} />}
    </JobChooser>
  );
}

interface FigureProps extends JobProps {
  title: string;
}

const FIGURES: Record<SectionFigure["type"], (props: FigureProps) => ReactNode> = {
  distribution: DistributionCard,
  timeline: TimelineCard,
  starts: StartsCard,
  lines: LinesCard,
};

function Figures({ experimentId, jobId }: JobProps) {
  const query = useQuery(sectionsQuery(experimentId, jobId));
  return (
    <QueryContent query={query} what="Loading the list of charts">
      {({ sections }) => {
        const figures = sections.flatMap((one) => one.figures);
        if (figures.length === 0) return <NoFigures sections={sections} />;
        return (
          <div className="stack wide">
            {figures.map(({ type, title }, index) => {
              const Figure = FIGURES[type];
              return <Figure key={`${index} ${jobId}`} experimentId={experimentId} jobId={jobId} title={title} />;
            })}
          </div>
        );
      }}
    </QueryContent>
  );
}

function NoFigures({ sections }: { sections: JobSections["sections"] }) {
  const notes = sections.map((one) => one.note).filter(Boolean);
  return (
    <Card>
      <EmptyState
        title="This job has no charts"
        actions={
          <Link
            className="button"
            from="/experiments/$experimentId"
            search={(before) => ({ ...before, part: "details" })}
          >
            See its details
          </Link>
        }
      >
        {notes.map((note) => (
          <p key={note}>{note}</p>
        ))}
      </EmptyState>
    </Card>
  );
}

function DistributionCard({ experimentId, jobId, title }: FigureProps) {
  const { metric, view = "histogram" } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(distributionQuery(experimentId, jobId, metric));
  return (
    <QueryContent query={query} what="Counting samples">
      {(found) => (
        <Card
          title={title}
          actions={
            <>
              <select
                aria-label="Metric"
                value={found.metric}
                onChange={(event) =>
                  void navigate({ search: (before) => ({ ...before, metric: event.target.value }), replace: true })
                }
              >
                {found.metrics.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
              <button
                type="button"
                className="button slim"
                onClick={() =>
                  void navigate({
                    search: (before) => ({ ...before, view: view === "ecdf" ? "histogram" : "ecdf" }),
                    replace: true,
                  })
                }
              >
                {view === "ecdf" ? "Show as a histogram" : "Show as an ECDF"}
              </button>
            </>
          }
        >
          <p className="muted small">{formatCount(found.count)} samples, counted by the server</p>
          <DistributionChart shown={[{ name: found.title, distribution: found }]} view={view} />
        </Card>
      )}
    </QueryContent>
  );
}

function TimelineCard({ experimentId, jobId, title }: FigureProps) {
  const query = useQuery(timelineQuery(experimentId, jobId));
  return (
    <Card title={title}>
      <QueryContent query={query}>{(found) => <TimelineChart timeline={found} />}</QueryContent>
    </Card>
  );
}

function StartsCard({ experimentId, jobId, title }: FigureProps) {
  const query = useQuery(startsQuery(experimentId, jobId));
  if (query.data?.runs.length === 0 || query.error) return null;
  return (
    <Card title={title}>
      <QueryContent query={query}>{(found) => <StartsChart starts={found} />}</QueryContent>
    </Card>
  );
}

function LinesCard({ experimentId, jobId, title }: FigureProps) {
  const query = useQuery(linesQuery(experimentId, jobId));
  // Most jobs that may report steps report none.
  if (query.data?.lines.length === 0) return null;
  return (
    <Card title={title}>
      <QueryContent query={query}>{(found) => <LinesChart lines={found} />}</QueryContent>
    </Card>
  );
}

export function Telemetry({ experimentId }: { experimentId: string }) {
  return (
    <JobChooser experimentId={experimentId}>
      {(jobId) => <CountersCard experimentId={experimentId} jobId={jobId} />}
    </JobChooser>
  );
}

function CountersCard({ experimentId, jobId }: JobProps) {
  const query = useQuery(countersQuery(experimentId, jobId));
  return (
    <Card title="The machine during the run">
      <QueryContent query={query}>
        {(found) =>
          found.series.length === 0 ? (
            <EmptyState title="No counters">
              <p>
                Probes read CPU, memory, power and GPU counters while a job runs. There are none where it failed before
                its first run, ended before the first reading, or where no probe works on its machine. The agent&apos;s
                details on the page Fleet name its probes and why one does not work.
              </p>
            </EmptyState>
          ) : (
            <TelemetryChart counters={found} />
          )
        }
      </QueryContent>
    </Card>
  );
}
