// Which part of the fleet is shown.
import { given, oneOf, type Search } from "@/components/search";

export const PARTS = ["agents", "abilities", "queue"] as const;
export type Part = (typeof PARTS)[number];

export function fleetSearch(search: Search): { part?: Part } {
  const part = oneOf(search["part"], PARTS);
  return given({ ...(part ? { part } : {}) });
}
