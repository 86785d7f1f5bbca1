// The loads of one experiment, second by second: the job that runs, or the one that is chosen.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { api, readBody } from "@/api/client";
import { loadSeriesQuery } from "@/api/loadSeries";
import type { QueuedJob } from "@/api/schema";
import { LoadSeriesChart } from "@/charts/LoadSeriesChart";
import { describeState } from "@/components/Badge";
import { Card } from "@/components/layout";

/** The first part of the key is invalidated when a job of any experiment moves on. */
function jobsQuery(experimentId: string) {
  return queryOptions({
    queryKey: ["jobs", "of", experimentId],
    queryFn: ({ signal }) =>
      readBody(api.GET("/api/v1/jobs", { signal, params: { query: { experiment: experimentId, limit: 500 } } })),
  });
}

export function LoadRuns({ experimentId }: { experimentId: string }) {
  const [chosen, setChosen] = useState("");
  // The server lists the newest first.
  const jobs = [...(useQuery(jobsQuery(experimentId)).data?.items ?? [])].reverse();
  const begun = jobs.filter((job) => job.state !== "waiting");
  const shown = begun.find((job) => job.id === chosen) ?? begun.find((job) => job.state === "leased") ?? begun.at(-1);
  if (!shown) return null;
  return (
    <Card
      title={shown.state === "leased" ? `Now: ${shown.title}` : `Second by second: ${shown.title}`}
      actions={
        begun.length > 1 && (
          <select aria-label="Job" value={shown.id} onChange={(event) => setChosen(event.target.value)}>
            {begun.map((job) => (
              <option key={job.id} value={job.id}>
                {job.title} ({describeState(job.state)})
              </option>
            ))}
          </select>
        )
      }
    >
      <JobSeries key={shown.id} job={shown} />
    </Card>
  );
}

function JobSeries({ job }: { job: QueuedJob }) {
  const query = useQuery(loadSeriesQuery(job.id, job.state === "leased"));
  if (query.data && query.data.runs.length > 0) return <LoadSeriesChart series={query.data} />;
  return (
    <p className="muted">
      {job.state === "leased" || query.isPending ? "Its first seconds come …" : "No second of it was kept."}
    </p>
  );
}
