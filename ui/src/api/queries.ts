// Queries that several pages share; the first part of each key is the noun that `live` invalidates.
import { queryOptions } from "@tanstack/react-query";

import { api, readBody } from "./client";

export function statsQuery() {
  return queryOptions({ queryKey: ["stats"], queryFn: ({ signal }) => readBody(api.GET("/api/v1/stats", { signal })) });
}

/** The newest experiments, to choose from. */
export function recentQuery() {
  return queryOptions({
    queryKey: ["listing", "recent"],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/experiments", { params: { query: { limit: 100 } }, signal })),
  });
}

/** The kinds of workload that the server knows, each with its form. */
export function kindsQuery() {
  return queryOptions({
    queryKey: ["kinds"],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/kinds", { signal })),
    staleTime: 60_000,
  });
}

/** The names that may stand in a recipe, a comparison or a matrix. */
export function namesQuery() {
  return queryOptions({
    queryKey: ["catalogue"],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/recipes/names", { signal })),
    staleTime: Infinity,
  });
}

/** The recipes that come with Prony, whole. */
export function examplesQuery() {
  return queryOptions({
    queryKey: ["examples"],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/recipes/examples", { signal })),
    staleTime: Infinity,
  });
}
