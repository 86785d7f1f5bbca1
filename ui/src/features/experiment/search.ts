// What the address of an experiment may hold: the part that is looked at, the job, and how its samples are shown.
import { given, oneOf, type Search, word } from "@/components/search";

export const PARTS = ["results", "jobs", "samples", "telemetry", "logs", "environment", "recipe"] as const;
export const VIEWS = ["histogram", "ecdf"] as const;

export type Part = (typeof PARTS)[number];

export interface ExperimentSearch {
  part?: Part | undefined;
  job?: string | undefined;
  metric?: string | undefined;
  view?: (typeof VIEWS)[number] | undefined;
}

export function experimentSearch(search: Search): ExperimentSearch {
  return given({
    part: oneOf(search.part, PARTS),
    job: word(search.job),
    metric: word(search.metric),
    view: oneOf(search.view, VIEWS),
  });
}
