import { describe, expect, it } from "vitest";

import { formatDay, formatInstant } from "./time";

describe("an instant", () => {
  it("is written in the zone that is named, which stands beside it", () => {
    expect(formatInstant("2026-11-15T03:00:00Z", "Europe/Berlin")).toBe("15 Nov 2026, 04:00:00 CET");
    expect(formatInstant("2026-07-15T03:00:00Z", "Europe/Berlin")).toBe("15 Jul 2026, 05:00:00 CEST");
  });

  it("is written in the reader's zone where none is named", () => {
    const own = new Intl.DateTimeFormat().resolvedOptions().timeZone;
    const instant = "2026-11-15T03:00:00Z";
    expect(formatInstant(instant)).toBe(formatInstant(instant, own));
    expect(formatInstant(instant).startsWith(formatDay(instant))).toBe(true);
  });
});
