// Questions that several pages ask; the first part of each key is the noun that `live` makes stale.
import { queryOptions } from "@tanstack/react-query";

import { api, got } from "./client";

export function statsQuery() {
  return queryOptions({ queryKey: ["stats"], queryFn: ({ signal }) => got(api.GET("/api/v1/stats", { signal })) });
}
