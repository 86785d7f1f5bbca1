// Queries about agents and the queue that several pages share.
import { queryOptions } from "@tanstack/react-query";

import { api, readBody } from "./client";

export function agentsQuery() {
  return queryOptions({
    queryKey: ["agents"],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/agents", { params: { query: { limit: 500 } }, signal })),
  });
}

export function queueQuery() {
  return queryOptions({ queryKey: ["queue"], queryFn: ({ signal }) => readBody(api.GET("/api/v1/queue", { signal })) });
}

export function aboutQuery() {
  return queryOptions({
    queryKey: ["about"],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/about", { signal })),
    staleTime: 60_000,
  });
}
