// What the address of the settings may hold.
import { given, oneOf, type Search } from "@/components/search";

export const PARTS = ["tokens", "trail", "look", "about"] as const;
export type Part = (typeof PARTS)[number];

export interface SettingsSearch {
  part?: Part | undefined;
}

export function settingsSearch(search: Search): SettingsSearch {
  return given({ part: oneOf(search.part, PARTS) });
}
