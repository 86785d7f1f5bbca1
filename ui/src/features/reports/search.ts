// What the address of a report may hold.
import { given, type Search, word } from "@/components/search";

export interface ReportsSearch {
  of?: string | undefined;
}

export function reportsSearch(search: Search): ReportsSearch {
  return given({ of: word(search.of) });
}
