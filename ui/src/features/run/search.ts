// The search parameters of the run page: the example or experiment that the editor starts with, and the open form.
import { parseText, type Search } from "@/components/search";

export interface RunSearch {
  example?: string | undefined;
  from?: string | undefined;
  form?: string | undefined;
}

export function parseRunSearch(search: Search): RunSearch {
  return {
    example: parseText(search["example"]),
    from: parseText(search["from"]),
    form: parseText(search["form"]),
  };
}
