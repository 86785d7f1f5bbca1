// The search parameters of the reports page.
import { dropUndefined, parseText, type Search } from "@/components/search";

export interface ReportsSearch {
  of?: string | undefined;
}

export function parseReportsSearch(search: Search): ReportsSearch {
  return dropUndefined({ of: parseText(search.of) });
}
