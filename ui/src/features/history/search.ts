// What the addresses of histories may hold.
import type { ChangeState, SeriesState } from "@/api/schema";
import { given, oneOf, type Search, word } from "@/components/search";

export const SERIES_STATES: readonly SeriesState[] = [
  "regression", "suspect", "drift", "environment", "improvement", "learning", "steady",
];
export const CHANGE_STATES: readonly ChangeState[] = [
  "suspect", "found", "confirmed", "rejected", "acknowledged", "resolved",
];

export interface SeriesSearch {
  name?: string | undefined;
  state?: SeriesState | undefined;
  /** Of the changes; those that are open, by default. */
  changes?: ChangeState | undefined;
}

export function seriesSearch(search: Search): SeriesSearch {
  return given({
    name: word(search.name),
    state: oneOf(search.state, SERIES_STATES),
    changes: oneOf(search.changes, CHANGE_STATES),
  });
}

export interface HistorySearch {
  metric?: string | undefined;
  /** The experiment whose results are ringed. */
  of?: string | undefined;
}

export function historySearch(search: Search): HistorySearch {
  return given({ metric: word(search.metric), of: word(search.of) });
}
