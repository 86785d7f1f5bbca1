// The search parameters of the list of experiments: filters and order.
import { parseChoice, parseText, type Search } from "@/components/search";

export const STATES = ["pending", "running", "complete", "partial", "failed", "cancelled"] as const;
export const GRADES = ["valid", "suspect", "void"] as const;
export const GATES = ["passed", "failed", "cannot tell"] as const;
export const SORTS = ["newest", "oldest", "name", "lowest", "highest"] as const;

export interface ListSearch {
  search?: string | undefined;
  state?: (typeof STATES)[number] | undefined;
  kind?: string | undefined;
  label?: string | undefined;
  grade?: (typeof GRADES)[number] | undefined;
  gates?: (typeof GATES)[number] | undefined;
  sort?: (typeof SORTS)[number] | undefined;
}

export function parseListSearch(search: Search): ListSearch {
  return {
    search: parseText(search.search),
    state: parseChoice(search.state, STATES),
    kind: parseText(search.kind),
    label: parseText(search.label),
    grade: parseChoice(search.grade, GRADES),
    gates: parseChoice(search.gates, GATES),
    sort: parseChoice(search.sort, SORTS),
  };
}
