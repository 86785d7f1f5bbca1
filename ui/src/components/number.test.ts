import { describe, expect, it } from "vitest";

import { commonScale, plain, ratio, share, text } from "./number";

describe("a number", () => {
  it("is written with the digits that its interval supports", () => {
    expect(text({ value: 12.3456, unit: "ms", low: 12.1, high: 12.6 })).toBe("12.3 ms [12.1, 12.6]");
    expect(text({ value: 0.0123456, unit: "ms", low: 0.0121, high: 0.0126 })).toBe("12.3 µs [12.1, 12.6]");
  });

  it("has three digits where nothing vouches for more", () => {
    expect(text({ value: 12.3456, unit: "ms", low: null, high: null })).toBe("12.3 ms");
    expect(plain(1234567, "B")).toBe("1.18 MiB");
    expect(plain(0, "ms")).toBe("0 ms");
  });

  it("is a dash where it is not finite", () => {
    expect(plain(Number.NaN, "ms")).toBe("–");
  });

  it("shares one unit with its column", () => {
    const scale = commonScale([{ value: 0.9, unit: "ms" }, { value: 12, unit: "ms" }]);
    expect(scale.symbol).toBe("ms");
    expect(text({ value: 0.9, unit: "ms" }, scale)).toBe("0.900 ms");
  });

  it("is a ratio of two digits or a percentage", () => {
    expect(ratio(1.94)).toBe("1.9×");
    expect(share(0.012)).toBe("1.2 %");
    expect(share(0.95)).toBe("95 %");
  });
});
