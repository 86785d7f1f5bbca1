// The page of one experiment: progress, results, jobs, samples, logs and recipe.
import "./experiment.css";

import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";

import { kindsQuery } from "@/api/queries";
import type { ExperimentView } from "@/api/schema";
import { StateBadge } from "@/components/Badge";
import { Card, Labels, Page } from "@/components/layout";
import { countEnded, describeCounts, Progress, shownState } from "@/components/Progress";
import { Missing, QueryContent } from "@/components/states";
import { type Tab, Tabs } from "@/components/Tabs";
import { RelativeTime } from "@/components/time";

import { Actions } from "./Actions";
import { RunningJobs, TimeLeft } from "./RunningJobs";
import { Details } from "./Details";
import { Environments } from "./Environments";
import { Files } from "./Files";
import { JobGrid } from "./JobGrid";
import { LoadOverTime } from "./LoadOverTime";
import { Logs } from "./Logs";
import { ExperimentTimes } from "./ExperimentTimes";
import { experimentQuery } from "./queries";
import { RelatedLinks } from "./RelatedLinks";
import { RecipeText } from "./RecipeText";
import { Results } from "./Results";
import { Samples, Telemetry } from "./Samples";
import type { Part } from "./search";
import { isOver, type LiveExperiment, useLiveExperiment } from "./liveExperiment";

const route = getRouteApi("/experiments/$experimentId");
const TABS: readonly Tab<Part>[] = [
  { key: "results", label: "Results" },
  { key: "jobs", label: "Jobs" },
  { key: "load", label: "Load" },
  { key: "samples", label: "Samples" },
  { key: "details", label: "Details" },
  { key: "telemetry", label: "Telemetry" },
  { key: "logs", label: "Logs" },
  { key: "files", label: "Files" },
  { key: "environment", label: "Environment" },
  { key: "recipe", label: "Recipe" },
];

export function Experiment() {
  const { experimentId } = route.useParams();
  const query = useQuery(experimentQuery(experimentId));
  const live = useLiveExperiment(experimentId, isOver(query.data ?? null));
  return (
    <QueryContent query={query} what="Loading the experiment" missing={<MissingExperiment />}>
      {(loaded) => <ExperimentPage view={chooseNewer(loaded, live.view)} live={live} />}
    </QueryContent>
  );
}

function MissingExperiment() {
  const { experimentId } = route.useParams();
  return (
    <Missing
      title="No such experiment"
      back={
        <Link to="/experiments" className="button">
          To all experiments
        </Link>
      }
    >
      <p className="mono">{experimentId}</p>
    </Missing>
  );
}

/** What the stream tells is never older than what was asked, except after the experiment has ended. */
function chooseNewer(loaded: ExperimentView, streamed: ExperimentView | null): ExperimentView {
  return streamed !== null && !isOver(loaded) ? streamed : loaded;
}

function ExperimentPage({ view, live }: { view: ExperimentView; live: LiveExperiment }) {
  const { experiment, counts } = view;
  const { part = "results" } = route.useSearch();
  const navigate = route.useNavigate();
  const isRunning = !isOver(view);
  const jobs = [...live.jobs.values()];
  const kinds = useQuery(kindsQuery()).data?.items ?? [];
  const hasLoad = kinds.some((one) => one.name === experiment.recipe.workload.kind && one.has_load);
  return (
    <Page
      title={experiment.name}
      about={
        <span className="row">
          <StateBadge of={shownState(experiment.state, counts)} />
          <span className="mono">{experiment.id}</span>
          <span>
            submitted <RelativeTime at={experiment.created_at} />
            {view.submitted_by && ` by ${view.submitted_by}`}
          </span>
          <ExperimentTimes experiment={experiment} jobs={jobs} />
          {experiment.rerun_of && (
            <span>
              repeats{" "}
              <Link to="/experiments/$experimentId" params={{ experimentId: experiment.rerun_of }}>
                {experiment.rerun_of}
              </Link>
            </span>
          )}
          <Labels of={experiment.recipe.labels} />
        </span>
      }
      actions={<Actions view={view} />}
    >
      <RelatedLinks experiment={experiment} jobs={jobs} />
      {experiment.recipe.description && <p className="description">{experiment.recipe.description}</p>}
      {isRunning && (
        <Card label="Progress">
          <div className="stack">
            <div className="row spread">
              <strong role="status">
                {countEnded(counts)} of {experiment.job_count} jobs ended
              </strong>
              <span className="muted">
                {describeCounts(counts)}
                <TimeLeft live={live} />
              </span>
            </div>
            <Progress counts={counts} total={experiment.job_count} />
            <RunningJobs live={live} />
            {hasLoad && (
              <Link from="/experiments/$experimentId" search={(before) => ({ ...before, part: "load" as const })}>
                Load, second by second
              </Link>
            )}
          </div>
        </Card>
      )}
      <Tabs
        tabs={hasLoad ? TABS : TABS.filter((tab) => tab.key !== "load")}
        chosen={part}
        label="Parts of the experiment"
        onChoose={(next) => void navigate({ search: (before) => ({ ...before, part: next }), replace: true })}
      >
        <TabContent part={part} view={view} live={live} />
      </Tabs>
    </Page>
  );
}

function TabContent({ part, view, live }: { part: Part; view: ExperimentView; live: LiveExperiment }) {
  const { experiment } = view;
  switch (part) {
    case "results":
      return <Results view={view} />;
    case "jobs":
      return <JobGrid jobs={live.jobs} />;
    case "load":
      return <LoadOverTime live={live} />;
    case "samples":
      return <Samples experimentId={experiment.id} />;
    case "details":
      return <Details experimentId={experiment.id} />;
    case "telemetry":
      return <Telemetry experimentId={experiment.id} />;
    case "logs":
      return <Logs live={live} />;
    case "files":
      return <Files experimentId={experiment.id} />;
    case "environment":
      return <Environments experimentId={experiment.id} />;
    case "recipe":
      return <RecipeText experiment={experiment} />;
  }
}
