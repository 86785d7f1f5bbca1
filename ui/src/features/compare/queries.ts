// Queries of the comparison page.
import { queryOptions } from "@tanstack/react-query";

import { api, readBody } from "@/api/client";
import type { Comparison } from "@/api/schema";

import type { CompareSearch } from "./search";

export function comparisonQuery(search: CompareSearch) {
  const { of = "", metric, across, threshold, anyway, rule } = search;
  const query = { of, metric, across, threshold, anyway, rule };
  return queryOptions({
    queryKey: ["comparison", query],
    // The client forgets that pairs are pairs.
    queryFn: async ({ signal }) =>
      (await readBody(api.GET("/api/v1/comparison", { params: { query }, signal }))) as Comparison,
    enabled: of !== "",
  });
}

/** So many that the bulk is seen well where a few samples lie far away. */
const BINS = 240;

export function distributionQuery(jobId: string, metric: string | undefined) {
  return queryOptions({
    queryKey: ["distribution", jobId, metric],
    queryFn: ({ signal }) =>
      readBody(
        api.GET("/api/v1/jobs/{job_id}/distribution", {
          params: { path: { job_id: jobId }, query: { metric, bins: BINS } },
          signal,
        }),
      ),
  });
}
