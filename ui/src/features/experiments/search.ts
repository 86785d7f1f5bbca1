// What the address of the list may hold: every filter and the order.
import { given, oneOf, type Search, word } from "@/components/search";

export const STATES = ["pending", "running", "complete", "partial", "failed", "cancelled"] as const;
export const KINDS = ["model", "service", "script", "hardware"] as const;
export const GRADES = ["valid", "suspect", "void"] as const;
export const GATES = ["passed", "failed", "cannot tell"] as const;
export const SORTS = ["newest", "oldest", "name", "lowest", "highest"] as const;

export interface ListSearch {
  search?: string | undefined;
  state?: (typeof STATES)[number] | undefined;
  kind?: (typeof KINDS)[number] | undefined;
  label?: string | undefined;
  grade?: (typeof GRADES)[number] | undefined;
  gates?: (typeof GATES)[number] | undefined;
  sort?: (typeof SORTS)[number] | undefined;
}

export function listSearch(search: Search): ListSearch {
  return given({
    search: word(search.search),
    state: oneOf(search.state, STATES),
    kind: oneOf(search.kind, KINDS),
    label: word(search.label),
    grade: oneOf(search.grade, GRADES),
    gates: oneOf(search.gates, GATES),
    sort: oneOf(search.sort, SORTS),
  });
}
