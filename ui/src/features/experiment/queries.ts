// Queries of the experiment page; every key begins with the experiment's id, so that one change makes all stale.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { api, ApiError, readBody } from "@/api/client";
import type { Comparison, JobSections, ShownResults } from "@/api/schema";

/** A name and a value; null is unknown. */
export type Fact = ShownResults["programs"][string][number];

export function experimentQuery(experimentId: string) {
  return queryOptions({
    queryKey: ["experiment", experimentId, "view"],
    queryFn: ({ signal }) =>
      readBody(
        api.GET("/api/v1/experiments/{experiment_id}", { signal, params: { path: { experiment_id: experimentId } } }),
      ),
  });
}

/** All numbers there are; null where there are none yet. */
export function resultsQuery(experimentId: string) {
  return queryOptions({
    queryKey: ["experiment", experimentId, "results"],
    queryFn: async ({ signal }): Promise<ShownResults | null> => {
      try {
        const request = { signal, params: { path: { experiment_id: experimentId } } };
        // The client's types forget that a pair is a pair.
        return (await readBody(api.GET("/api/v1/experiments/{experiment_id}/results", request))) as ShownResults;
      } catch (error) {
        if (error instanceof ApiError && (error.status === 404 || error.status === 409)) return null;
        throw error;
      }
    },
  });
}

/** The gates of its recipe, and those that are tried on its numbers besides. */
export function gatesQuery(experimentId: string, { gate, strict }: { gate: string; strict: boolean }) {
  const params = { path: { experiment_id: experimentId }, query: { strict, ...(gate ? { gate } : {}) } };
  return queryOptions({
    queryKey: ["experiment", experimentId, "gates", gate, strict],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/experiments/{experiment_id}/gates", { signal, params })),
  });
}

export function jobQuery(experimentId: string, jobId: string) {
  return queryOptions({
    queryKey: ["experiment", experimentId, "job", jobId],
    queryFn: ({ signal }) =>
      readBody(api.GET("/api/v1/jobs/{job_id}", { signal, params: { path: { job_id: jobId } } })),
  });
}

export function distributionQuery(experimentId: string, jobId: string, metric: string | undefined) {
  return queryOptions({
    queryKey: ["experiment", experimentId, "distribution", jobId, metric ?? ""],
    queryFn: ({ signal }) =>
      readBody(
        api.GET("/api/v1/jobs/{job_id}/distribution", {
          signal,
          params: { path: { job_id: jobId }, query: { bins: 240, ...(metric ? { metric } : {}) } },
        }),
      ),
  });
}

export function timelineQuery(experimentId: string, jobId: string) {
  return queryOptions({
    queryKey: ["experiment", experimentId, "timeline", jobId],
    queryFn: ({ signal }) =>
      readBody(api.GET("/api/v1/jobs/{job_id}/timeline", { signal, params: { path: { job_id: jobId } } })),
  });
}

export function startsQuery(experimentId: string, jobId: string) {
  return queryOptions({
    queryKey: ["experiment", experimentId, "starts", jobId],
    queryFn: ({ signal }) =>
      readBody(api.GET("/api/v1/jobs/{job_id}/starts", { signal, params: { path: { job_id: jobId } } })),
  });
}

export function linesQuery(experimentId: string, jobId: string) {
  return queryOptions({
    queryKey: ["experiment", experimentId, "lines", jobId],
    queryFn: ({ signal }) =>
      readBody(api.GET("/api/v1/jobs/{job_id}/lines", { signal, params: { path: { job_id: jobId } } })),
  });
}

/** What the kind of the workload shows of a job beside its numbers. */
export function sectionsQuery(experimentId: string, jobId: string) {
  return queryOptions({
    queryKey: ["experiment", experimentId, "sections", jobId],
    // The client's types forget that a pair is a pair.
    queryFn: async ({ signal }) =>
      (await readBody(
        api.GET("/api/v1/jobs/{job_id}/sections", { signal, params: { path: { job_id: jobId } } }),
      )) as JobSections,
  });
}

export function countersQuery(experimentId: string, jobId: string) {
  return queryOptions({
    queryKey: ["experiment", experimentId, "counters", jobId],
    queryFn: ({ signal }) =>
      readBody(api.GET("/api/v1/jobs/{job_id}/counters", { signal, params: { path: { job_id: jobId } } })),
  });
}

/** The files of a job's result. */
export function filesQuery(experimentId: string, jobId: string) {
  return queryOptions({
    queryKey: ["experiment", experimentId, "files", jobId],
    queryFn: ({ signal }) =>
      readBody(api.GET("/api/v1/jobs/{job_id}/files", { signal, params: { path: { job_id: jobId } } })),
  });
}

/** A text among them, piece by piece; null is where it ends. */
export function fileTextQuery(experimentId: string, jobId: string, name: string) {
  return infiniteQueryOptions({
    queryKey: ["experiment", experimentId, "fileText", jobId, name],
    initialPageParam: 0,
    queryFn: async ({ signal, pageParam }) => {
      const params = { path: { job_id: jobId }, query: { name, offset: pageParam } };
      const { data = "", response } = await api.GET("/api/v1/jobs/{job_id}/file-text", {
        signal,
        params,
        parseAs: "text",
      });
      const isWhole = response.headers.get("Prony-Ended") === "true";
      return { text: data, next: isWhole ? null : Number(response.headers.get("Prony-Next-Offset")) };
    },
    getNextPageParam: (last: { next: number | null }) => last.next,
  });
}

/** How the sides of a duet stand against each other; null while that cannot be said. */
export function sidesQuery(experimentId: string) {
  return queryOptions({
    queryKey: ["experiment", experimentId, "sides"],
    queryFn: async ({ signal }): Promise<Comparison | null> => {
      try {
        return (await readBody(
          api.GET("/api/v1/comparison", { signal, params: { query: { of: experimentId } } }),
        )) as Comparison;
      } catch (error) {
        if (error instanceof ApiError && error.status >= 400 && error.status < 500) return null;
        throw error;
      }
    },
  });
}
