// Queries of the overview page.
import { queryOptions } from "@tanstack/react-query";

import { api, readBody } from "@/api/client";
import type { Glance } from "@/api/schema";

export function overviewQuery() {
  return queryOptions({
    queryKey: ["overview"],
    // The client's types forget that a pair is a pair.
    queryFn: async ({ signal }) => (await readBody(api.GET("/api/v1/overview", { signal }))) as Glance,
  });
}

export function examplesQuery() {
  return queryOptions({
    queryKey: ["examples"],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/recipes/examples", { signal })),
    staleTime: Infinity,
  });
}
