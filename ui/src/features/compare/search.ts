// The search parameters of the comparison page.
import type { operations } from "@/api/schema";
import { parseChoice, parseFlag, parseText, type Search } from "@/components/search";

export type Rule = NonNullable<operations["comparison"]["parameters"]["query"]["rule"]>;

export interface CompareSearch {
  /** Experiments or jobs with commas between; the first is the baseline. */
  of?: string | undefined;
  metric?: string | undefined;
  across?: string | undefined;
  threshold?: string | undefined;
  anyway?: true | undefined;
  rule?: Rule | undefined;
  /** Which of the matches is looked at closely. */
  match?: string | undefined;
  view?: "histogram" | "ecdf" | undefined;
  sample?: string | undefined;
}

export function parseCompareSearch(search: Search): CompareSearch {
  return {
    of: parseText(search.of),
    metric: parseText(search.metric),
    across: parseText(search.across),
    threshold: parseText(search.threshold),
    anyway: parseFlag(search.anyway),
    // The server has the list, and refuses what is not on it.
    rule: parseText(search.rule) as Rule | undefined,
    match: parseText(search.match),
    view: parseChoice(search.view, ["histogram", "ecdf"]),
    sample: parseText(search.sample),
  };
}
