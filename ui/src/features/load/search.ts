// Which loads are looked at together, and the limits that they are held against.
import { given, type Search, word } from "@/components/search";

export interface LoadSearch {
  ids?: string | undefined;
  slo?: string | undefined;
}

export function loadSearch(search: Search): LoadSearch {
  return given({ ids: word(search["ids"]), slo: word(search["slo"]) });
}
