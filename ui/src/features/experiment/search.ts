// The search parameters of the experiment page.
import { parseChoice, parseText, type Search } from "@/components/search";

export const PARTS = [
  "results",
  "jobs",
  "load",
  "samples",
  "details",
  "telemetry",
  "logs",
  "files",
  "environment",
  "recipe",
] as const;
export const VIEWS = ["histogram", "ecdf"] as const;

export type Part = (typeof PARTS)[number];

export interface ExperimentSearch {
  part?: Part | undefined;
  job?: string | undefined;
  metric?: string | undefined;
  /** The keys of the columns that somebody chose, with commas between them. */
  columns?: string | undefined;
  view?: (typeof VIEWS)[number] | undefined;
  /** Of the log: only lines that hold this text, and only those of this source. */
  find?: string | undefined;
  source?: string | undefined;
  /** Of the files: the one that is shown. */
  file?: string | undefined;
}

export function parseExperimentSearch(search: Search): ExperimentSearch {
  return {
    part: parseChoice(search.part, PARTS),
    job: parseText(search.job),
    metric: parseText(search.metric),
    columns: typeof search.columns === "string" ? search.columns : undefined,
    view: parseChoice(search.view, VIEWS),
    find: parseText(search.find),
    source: parseText(search.source),
    file: parseText(search.file),
  };
}
