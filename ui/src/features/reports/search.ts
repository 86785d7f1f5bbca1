// The search parameters of the reports page.
import { parseText, type Search } from "@/components/search";

export interface ReportsSearch {
  of?: string | undefined;
}

export function parseReportsSearch(search: Search): ReportsSearch {
  return { of: parseText(search.of) };
}
