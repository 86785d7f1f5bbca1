// The query of a load's numbers second by second; while the job runs it is asked again and again.
import { queryOptions } from "@tanstack/react-query";

import { api, readBody } from "./client";

const POINTS = 600;
const AGAIN_MS = 2000;

export function loadSeriesQuery(jobId: string, isRunning: boolean) {
  const params = { path: { job_id: jobId }, query: { points: POINTS } };
  return queryOptions({
    // What ran is another answer than what runs: it comes from the samples.
    queryKey: ["loadSeries", jobId, isRunning],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/jobs/{job_id}/load-series", { signal, params })),
    refetchInterval: isRunning ? AGAIN_MS : false,
  });
}
