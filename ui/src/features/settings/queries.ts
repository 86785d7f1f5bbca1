// Queries and actions of the settings page.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { api, readBody } from "@/api/client";
import type { NewToken } from "@/api/schema";

export function tokensQuery() {
  return queryOptions({
    queryKey: ["tokens"],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/tokens", { params: { query: { limit: 500 } }, signal })),
  });
}

export function auditQuery() {
  return infiniteQueryOptions({
    queryKey: ["audit"],
    queryFn: ({ signal, pageParam }) =>
      readBody(api.GET("/api/v1/audit", { params: { query: { limit: 200, cursor: pageParam ?? undefined } }, signal })),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next ?? null,
  });
}

export function healthQuery() {
  return queryOptions({
    queryKey: ["health"],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/health", { signal })),
  });
}

export async function addToken(body: NewToken) {
  return readBody(api.POST("/api/v1/tokens", { body }));
}

export async function revokeToken(tokenId: string) {
  return readBody(api.DELETE("/api/v1/tokens/{token_id}", { params: { path: { token_id: tokenId } } }));
}

/** Holds every sample file against its checksum; takes minutes for many results. */
export async function checkStore() {
  return readBody(api.POST("/api/v1/store/check", {}));
}
