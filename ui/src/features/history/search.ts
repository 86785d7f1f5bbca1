// The search parameters of the history pages.
import type { ChangeState, SeriesState } from "@/api/schema";
import { parseChoice, parseText, type Search } from "@/components/search";

export const SERIES_STATES: readonly SeriesState[] = [
  "regression",
  "suspect",
  "drift",
  "environment",
  "improvement",
  "learning",
  "steady",
];
export const CHANGE_STATES: readonly ChangeState[] = [
  "suspect",
  "found",
  "confirmed",
  "rejected",
  "acknowledged",
  "resolved",
];

export interface SeriesSearch {
  name?: string | undefined;
  state?: SeriesState | undefined;
  /** Of the changes; those that are open, by default. */
  changes?: ChangeState | undefined;
}

export function parseSeriesSearch(search: Search): SeriesSearch {
  return {
    name: parseText(search.name),
    state: parseChoice(search.state, SERIES_STATES),
    changes: parseChoice(search.changes, CHANGE_STATES),
  };
}

export interface HistorySearch {
  metric?: string | undefined;
  /** The experiment whose results are ringed. */
  of?: string | undefined;
}

export function parseHistorySearch(search: Search): HistorySearch {
  return { metric: parseText(search.metric), of: parseText(search.of) };
}
