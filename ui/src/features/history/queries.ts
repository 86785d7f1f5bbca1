// Queries and actions of the history pages.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { api, readBody } from "@/api/client";
import type { History, PageChange } from "@/api/schema";

import type { SeriesSearch } from "./search";

export function seriesQuery({ name, state }: SeriesSearch) {
  return infiniteQueryOptions({
    queryKey: ["series", "list", name, state],
    queryFn: ({ signal, pageParam }) =>
      readBody(
        api.GET("/api/v1/series", {
          params: { query: { name, state, limit: 100, cursor: pageParam ?? undefined } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next ?? null,
  });
}

export function changesQuery(state: SeriesSearch["changes"]) {
  return queryOptions({
    queryKey: ["changes", state],
    // The client forgets that pairs are pairs; so below.
    queryFn: async ({ signal }) =>
      (await readBody(api.GET("/api/v1/changes", { params: { query: { state, limit: 100 } }, signal }))) as PageChange,
  });
}

export function historyQuery(seriesId: string, metric: string | undefined) {
  return queryOptions({
    queryKey: ["series", seriesId, metric],
    queryFn: async ({ signal }) =>
      (await readBody(
        api.GET("/api/v1/series/{series_id}", { params: { path: { series_id: seriesId }, query: { metric } }, signal }),
      )) as History,
  });
}

export async function acknowledge(changeId: string, reason: string, expected: boolean) {
  return readBody(
    api.POST("/api/v1/changes/{change_id}/ack", {
      params: { path: { change_id: changeId } },
      body: { reason, expected, who: "" },
    }),
  );
}

export async function setBaseline(seriesId: string, jobId: string | null, reason: string) {
  return readBody(
    api.PUT("/api/v1/series/{series_id}/baseline", {
      params: { path: { series_id: seriesId } },
      body: { job_id: jobId, reason },
    }),
  );
}

export async function clearBaseline(seriesId: string) {
  return readBody(api.DELETE("/api/v1/series/{series_id}/baseline", { params: { path: { series_id: seriesId } } }));
}
