// The search parameters of the fleet page.
import type { JobState } from "@/api/schema";
import { dropUndefined, parseChoice, type Search } from "@/components/search";

export const PARTS = ["agents", "abilities", "queue", "jobs"] as const;
export const JOB_STATES: readonly JobState[] = ["waiting", "leased", "complete", "partial", "failed", "cancelled"];
export type Part = (typeof PARTS)[number];

export function parseFleetSearch(search: Search): { part?: Part | undefined; state?: JobState | undefined } {
  return dropUndefined({ part: parseChoice(search["part"], PARTS), state: parseChoice(search["state"], JOB_STATES) });
}
