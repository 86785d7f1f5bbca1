// Queries that several pages share; the first part of each key is the noun that `live` invalidates.
import { queryOptions } from "@tanstack/react-query";

import { api, readBody } from "./client";
import type { Experiment } from "./schema";

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

// Beyond so many newer runs of a recipe, the one before an old run is chosen by hand.
const NEWEST_RUNS = 200;

/** The run of the same recipe before this one, of those that have numbers; null where this was the first. */
export function previousRunQuery({ id, name, created_at }: Pick<Experiment, "id" | "name" | "created_at">) {
  return queryOptions({
    queryKey: ["listing", "previous", id],
    queryFn: async ({ signal }) => {
      const query = { name, limit: NEWEST_RUNS };
      const { items } = await readBody(api.GET("/api/v1/experiments", { params: { query }, signal }));
      const earlier = items.map((view) => view.experiment).filter((one) => one.created_at < created_at);
      return earlier.find((one) => one.state === "complete" || one.state === "partial") ?? null;
    },
  });
}

/** The kinds of workload that the server knows. */
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
