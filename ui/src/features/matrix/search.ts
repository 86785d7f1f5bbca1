// What the address of a matrix may hold.
import { given, oneOf, type Search, word } from "@/components/search";

export interface MatrixSearch {
  ids?: string | undefined;
  rows?: string | undefined;
  columns?: string | undefined;
  metric?: string | undefined;
  against?: "cost" | "power" | undefined;
}

export function matrixSearch(search: Search): MatrixSearch {
  return given({
    ids: word(search.ids),
    rows: word(search.rows),
    columns: word(search.columns),
    metric: word(search.metric),
    against: oneOf(search.against, ["cost", "power"]),
  });
}
