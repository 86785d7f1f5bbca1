// Queries of the device page.
import { queryOptions } from "@tanstack/react-query";

import { api, readBody } from "@/api/client";

/** The agent reads its device every 5 s. */
const OFTEN_MS = 5000;

export function deviceQuery(agentId: string) {
  return queryOptions({
    queryKey: ["agent", agentId],
    queryFn: ({ signal }) =>
      readBody(api.GET("/api/v1/agents/{agent_id}", { params: { path: { agent_id: agentId } }, signal })),
  });
}

export function readingsQuery(agentId: string) {
  return queryOptions({
    queryKey: ["readings", agentId],
    queryFn: ({ signal }) =>
      readBody(api.GET("/api/v1/agents/{agent_id}/readings", { params: { path: { agent_id: agentId } }, signal })),
    refetchInterval: OFTEN_MS,
  });
}

export function deviceHistoryQuery(agentId: string) {
  return queryOptions({
    queryKey: ["device", agentId],
    queryFn: ({ signal }) =>
      readBody(api.GET("/api/v1/agents/{agent_id}/history", { params: { path: { agent_id: agentId } }, signal })),
  });
}

export function agentJobsQuery(agentId: string) {
  return queryOptions({
    queryKey: ["jobs", "agent", agentId],
    queryFn: ({ signal }) =>
      readBody(api.GET("/api/v1/jobs", { params: { query: { agent: agentId, limit: 10 } }, signal })),
  });
}
