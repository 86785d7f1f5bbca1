import { readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

import type { Estimate } from "@/api/schema";

import { chooseScale, formatCount, formatEstimate, formatShare, formatTick, formatValue } from "./number";

type Case = Pick<Estimate, "value" | "unit" | "low" | "high"> & { text: string };

// Reports and the terminal write the same numbers in the same way: their tests read this file too.
const CASES = JSON.parse(readFileSync("../tests/unit/report/numbers.json", "utf-8")) as Case[];

describe("a number", () => {
  it.each(CASES.map((one) => [one.text, one] as const))(
    "is written with the digits and the unit that suit it: %s",
    (written, one) => {
      expect(formatEstimate(one)).toBe(written);
    },
  );

  it("is a dash where it is not finite", () => {
    expect(formatValue(Number.NaN, "ms")).toBe("–");
    expect(formatEstimate({ value: 3, unit: "ms", low: 2, high: Infinity })).toBe("3.00 ms");
  });

  it("is grouped where it was counted", () => {
    expect([formatCount(1234), formatCount(12345), formatCount(1234567)]).toEqual([
      "1234",
      "12\u202f345",
      "1\u202f234\u202f567",
    ]);
  });

  it("stands at an axis in the unit of the axis", () => {
    const scale = chooseScale([
      { value: 2e6, unit: "1/s" },
      { value: 80e6, unit: "1/s" },
    ]);
    expect(scale.symbol).toBe("M/s");
    expect([0, 2_500_000, 80_000_000].map((value) => formatTick(value, scale))).toEqual(["0", "2.5", "80"]);
  });

  it("shares one unit with its column", () => {
    const scale = chooseScale([
      { value: 0.9, unit: "ms" },
      { value: 12, unit: "ms" },
    ]);
    expect(scale.symbol).toBe("ms");
    expect(formatEstimate({ value: 0.9, unit: "ms" }, scale)).toBe("0.900 ms");
  });

  it("is a percentage of two digits where it is a share", () => {
    expect(formatShare(0.012)).toBe("1.2 %");
    expect(formatShare(0.95)).toBe("95 %");
  });
});
