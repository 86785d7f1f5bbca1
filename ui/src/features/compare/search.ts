// What the address of a comparison may hold.
import { flag, given, oneOf, type Search, word } from "@/components/search";

export interface CompareSearch {
  /** Experiments or jobs with commas between; the first is the baseline. */
  of?: string | undefined;
  metric?: string | undefined;
  across?: string | undefined;
  threshold?: string | undefined;
  anyway?: true | undefined;
  rule?: "prony" | "ai-factory" | undefined;
  /** Which of the matches is looked at closely. */
  match?: string | undefined;
  view?: "histogram" | "ecdf" | undefined;
  sample?: string | undefined;
}

export function compareSearch(search: Search): CompareSearch {
  return given({
    of: word(search.of),
    metric: word(search.metric),
    across: word(search.across),
    threshold: word(search.threshold),
    anyway: flag(search.anyway),
    rule: oneOf(search.rule, ["prony", "ai-factory"]),
    match: word(search.match),
    view: oneOf(search.view, ["histogram", "ecdf"]),
    sample: word(search.sample),
  });
}
