// The search parameters of the matrix page.
import { parseChoice, parseText, type Search } from "@/components/search";

export interface MatrixSearch {
  ids?: string | undefined;
  rows?: string | undefined;
  columns?: string | undefined;
  metric?: string | undefined;
  against?: "cost" | "power" | "energy" | undefined;
}

export function parseMatrixSearch(search: Search): MatrixSearch {
  return {
    ids: parseText(search.ids),
    rows: parseText(search.rows),
    columns: parseText(search.columns),
    metric: parseText(search.metric),
    against: parseChoice(search.against, ["cost", "power", "energy"]),
  };
}
