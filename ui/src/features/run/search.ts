// Which example, or which earlier experiment's recipe, the editor begins with.
import { dropUndefined, parseText, type Search } from "@/components/search";

export function parseRunSearch(search: Search): { example?: string; from?: string } {
  const example = parseText(search["example"]);
  const from = parseText(search["from"]);
  return dropUndefined({ ...(example ? { example } : {}), ...(from ? { from } : {}) });
}
