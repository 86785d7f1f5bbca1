// The search parameters of the settings page.
import { parseChoice, type Search } from "@/components/search";

export const PARTS = ["tokens", "trail", "store", "look", "about"] as const;
export type Part = (typeof PARTS)[number];

export interface SettingsSearch {
  part?: Part | undefined;
}

export function parseSettingsSearch(search: Search): SettingsSearch {
  return { part: parseChoice(search.part, PARTS) };
}
