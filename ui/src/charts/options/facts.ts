// Finds where facts about the environment (kernel, driver, library) change between results.
import type { Point } from "@/api/schema";

/** The code changes with nearly every result, and is told with each. */
const OF_THE_CODE = "commit";
const LONGEST = 24;

export interface ChangedFacts {
  /** The first result that has the new facts. */
  index: number;
  /** `kernel: 6.1 → 6.5`. */
  facts: string[];
}

/** Return where facts changed; one that a result does not tell is taken as unchanged. */
export function findChangedFacts(points: readonly Pick<Point, "facts">[]): ChangedFacts[] {
  const known = new Map<string, string>();
  const found: ChangedFacts[] = [];
  points.forEach((point, index) => {
    const facts: string[] = [];
    for (const [name, value] of Object.entries(point.facts)) {
      if (name === OF_THE_CODE) continue;
      const before = known.get(name);
      if (before !== undefined && before !== value) facts.push(`${name}: ${shorten(before)} → ${shorten(value)}`);
      known.set(name, value);
    }
    if (facts.length > 0) found.push({ index, facts });
  });
  return found;
}

function shorten(text: string): string {
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST - 1)}…`;
}
