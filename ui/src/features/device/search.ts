// The search parameters of the device page.
import { parseText, type Search } from "@/components/search";

export interface DeviceSearch {
  /** Whose readings are drawn: `host`, or a GPU as its counters call it. */
  part?: string | undefined;
}

export function parseDeviceSearch(search: Search): DeviceSearch {
  return { part: parseText(search["part"]) };
}
