// The search parameters of the run page: the example or experiment that the editor starts with.
import { dropUndefined, parseText, type Search } from "@/components/search";

export function parseRunSearch(search: Search): { example?: string; from?: string } {
  const example = parseText(search["example"]);
  const from = parseText(search["from"]);
  return dropUndefined({ ...(example ? { example } : {}), ...(from ? { from } : {}) });
}
