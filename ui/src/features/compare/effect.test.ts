import { readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

import { formatShareParts } from "@/components/number";

import { formatChance, formatPercent } from "./effect";

interface Cases {
  percents: { share: number; text: string }[];
  chances: { p: number; text: string }[];
  shares: { value: number; low: number; high: number; text: string }[];
}

// Reports and the terminal write the same effects in the same way: their tests read this file too.
const CASES = JSON.parse(readFileSync("../tests/unit/report/effects.json", "utf-8")) as Cases;

describe("an effect", () => {
  it.each(CASES.percents)("below a whole percent is not written as that, nor as zero: $text", ({ share, text }) => {
    expect(formatPercent(share)).toBe(text.replace("-", "−"));
  });

  it.each(CASES.chances)("below a level is not written as that level: $text", ({ p, text }) => {
    expect(formatChance(p)).toBe(text.replace("<", "< "));
  });

  it.each(CASES.shares)("of a share has an interval rounded outwards: $text", ({ text, ...share }) => {
    expect(formatShareParts({ unit: "1", ...share }).interval).toBe(text.replaceAll(" %", ""));
  });
});
