// The search parameters of the fleet page.
import type { JobState } from "@/api/schema";
import { parseChoice, parseText, type Search } from "@/components/search";

export const PARTS = ["agents", "abilities", "queue", "jobs", "failures", "targets"] as const;
export const JOB_STATES: readonly JobState[] = ["waiting", "leased", "complete", "partial", "failed", "cancelled"];
export type Part = (typeof PARTS)[number];

export interface FleetSearch {
  part?: Part | undefined;
  state?: JobState | undefined;
  target?: string | undefined;
}

export function parseFleetSearch(search: Search): FleetSearch {
  return {
    part: parseChoice(search["part"], PARTS),
    state: parseChoice(search["state"], JOB_STATES),
    target: parseText(search["target"]),
  };
}
