import { describe, expect, it } from "vitest";

import { formatChangeSize } from "./tones";

describe("the size of a change", () => {
  it.each([
    [0.0661, 0.1919, "[+6.6 %, +19.2 %]"],
    [-0.0661, -0.0119, "[−6.7 %, −1.1 %]"],
    [0.066, 0.07, "[+6.6 %, +7.0 %]"],
  ])("rounds the ends %d and %d outwards", (low, high, shown) => {
    expect(formatChangeSize(0.1, low, high)).toBe(`+10.0 % ${shown}`);
  });

  it("has no interval where none is known", () => {
    expect(formatChangeSize(-0.25)).toBe("−25.0 %");
  });
});
