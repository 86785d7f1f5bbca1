// The load of one job, second by second, while it runs and after.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";

import { loadSeriesQuery } from "@/api/loadSeries";
import type { QueuedJob } from "@/api/schema";
import { LoadSeriesChart } from "@/charts/LoadSeriesChart";
import { Card } from "@/components/layout";
import { EmptyState, Loading, QueryContent } from "@/components/states";

import type { LiveExperiment } from "./liveExperiment";

const route = getRouteApi("/experiments/$experimentId");

export function LoadOverTime({ live }: { live: LiveExperiment }) {
  const { job } = route.useSearch();
  const navigate = route.useNavigate();
  const jobs = [...live.jobs.values()];
  const chosen = live.jobs.get(job ?? "") ?? jobs.find((one) => one.state === "leased") ?? jobs[0];
  if (!chosen) return <Loading what="Asking for the jobs" />;
  return (
    <Card
      title="Second by second"
      actions={
        <select
          aria-label="Job"
          value={chosen.id}
          onChange={(event) =>
            void navigate({ search: (before) => ({ ...before, job: event.target.value }), replace: true })
          }
        >
          {jobs.map((one) => (
            <option key={one.id} value={one.id}>
              {one.title} ({one.state})
            </option>
          ))}
        </select>
      }
    >
      <JobSeries key={chosen.id} job={chosen} />
    </Card>
  );
}

function JobSeries({ job }: { job: QueuedJob }) {
  const isRunning = job.state === "leased";
  const query = useQuery(loadSeriesQuery(job.id, isRunning));
  return (
    <QueryContent query={query} what="Asking for its seconds">
      {(series) =>
        series.runs.length > 0 ? (
          <LoadSeriesChart series={series} />
        ) : (
          <EmptyState title={isRunning ? "No second yet" : "No second was kept"}>
            <p>
              {isRunning
                ? "What is loaded starts and gets its data first."
                : "This job sent no request, or has not begun."}
            </p>
          </EmptyState>
        )
      }
    </QueryContent>
  );
}
