// The search parameters of the load page.
import { parseText, type Search } from "@/components/search";

export interface LoadSearch {
  ids?: string | undefined;
  slo?: string | undefined;
}

export function parseLoadSearch(search: Search): LoadSearch {
  return { ids: parseText(search["ids"]), slo: parseText(search["slo"]) };
}
