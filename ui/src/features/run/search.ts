// Which example, or which earlier experiment's recipe, the editor begins with.
import { given, type Search, word } from "@/components/search";

export function runSearch(search: Search): { example?: string; from?: string } {
  const example = word(search["example"]);
  const from = word(search["from"]);
  return given({ ...(example ? { example } : {}), ...(from ? { from } : {}) });
}
