import { render, screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { fakeEstimate } from "../../tests/fakes/analysis";

import { Quantity } from "./Quantity";

function renderText(quantity: React.ReactNode): string {
  render(<p data-testid="said">{quantity}</p>);
  return screen.getByTestId("said").textContent;
}

describe("a quantity", () => {
  it("is its value, its unit and its interval, with what stands behind it a hover away", () => {
    expect(renderText(<Quantity of={fakeEstimate({ value: 12.3456, low: 12.1, high: 12.6 })} />)).toBe(
      "12.35ms[12.10, 12.60]",
    );
    expect(screen.getByTitle("median; 10 runs; 95 % interval")).toBeDefined();
  });

  it("is a percentage where it is a share, and the ends of its interval are not rounded to it", () => {
    const share = fakeEstimate({ value: 0, low: 0, high: 0.0084, unit: "1" });
    expect(renderText(<Quantity of={share} asShare />)).toBe("0%[0, 0.84]");
  });

  it("says that it is suspect or void, in a word and not by colour alone, and is silent where it is valid", () => {
    render(<Quantity of={fakeEstimate()} grade="suspect" />);
    expect(screen.getByText("suspect:")).toBeDefined();
    expect(screen.getByTitle("this number is suspect")).toBeDefined();
    expect(renderText(<Quantity of={fakeEstimate()} grade="valid" />)).not.toContain("valid");
  });

  it("is a dash with the reason where nobody knows it", () => {
    expect(renderText(<Quantity of={null} missing="no price" />)).toBe("–");
    expect(screen.getByTitle("no price")).toBeDefined();
  });

  it.each([
    ["huge", { value: 83_500_000, unit: "1/USD", low: 81_600_000, high: 85_400_000 }, "83.5M/USD[81.6, 85.4]"],
    ["tiny", { value: 4.2e-9, unit: "USD" }, "4.20×10⁻⁹ USD"],
    ["negative", { value: -25_000, unit: "EUR", low: -27_000, high: -23_000 }, "-25.0k EUR[-27.0, -23.0]"],
    ["without a unit", { value: 0.25, unit: "1" }, "0.250"],
    ["not finite", { value: Number.NaN, unit: "ms" }, "–ms"],
    ["without an interval that can be vouched for", { value: 3, unit: "ms", low: 2, high: null }, "3.00ms"],
  ])("can be %s", (_, estimate, text) => {
    expect(renderText(<Quantity of={estimate} />)).toBe(text);
  });

  it("shares the unit of its column where it is told", () => {
    expect(renderText(<Quantity of={{ value: 0.9, unit: "ms" }} scale={{ symbol: "ms", factor: 1 }} />)).toBe(
      "0.900ms",
    );
  });

  it("leaves out the interval where there is no room for it", () => {
    expect(renderText(<Quantity of={fakeEstimate()} withInterval={false} />)).toBe("10.0ms");
  });
});
