import { screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";

import { fakeComparison, fakeContrast, fakeDistribution, fakeMatch } from "../../../tests/fakes/analysis";
import { fakeCatalogue } from "../../../tests/fakes/resources";
import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();

beforeEach(() => {
  server.current.answer("GET", "/api/v1/experiments", { items: [], next: null });
  server.current.answer("GET", "/api/v1/jobs/{job_id}/distribution", fakeDistribution());
  server.current.answer("GET", "/api/v1/recipes/names", fakeCatalogue());
});

it("offers the rules that the server has, its own without a name in the address", async () => {
  const rules = [
    { name: "prony", about: "intervals and tests" },
    { name: "other", about: "fixed limits" },
  ];
  server.current.answer("GET", "/api/v1/recipes/names", fakeCatalogue({ comparison_rules: rules }));
  const { user, address } = await visit("/compare");
  await user.selectOptions(await screen.findByLabelText("Rule"), await screen.findByText("fixed limits (other)"));
  expect(address()).toBe("/compare?rule=other");
  await user.selectOptions(screen.getByLabelText("Rule"), "intervals and tests");
  expect(address()).toBe("/compare");
});

describe("a comparison", () => {
  it("says what it comes to, and of each metric that decides both numbers, the change and its interval", async () => {
    server.current.answer("GET", "/api/v1/comparison", fakeComparison());
    await visit("/compare?of=e1,e2");
    expect(await screen.findByText("Inference p50 is 20 % worse.")).toBeDefined();
    const line = within(await screen.findByRole("row", { name: /^Inference p50/ }));
    expect(line.getByTitle("inference_ms.p50").textContent).toBe("Inference p50");
    expect(line.getByText("+20.0 %")).toBeDefined();
    expect(line.getByText("[+15.0 %, +25.0 %]")).toBeDefined();
    expect(line.getByText("[9.0, 11.0]")).toBeDefined();
    expect(line.getByText("regression")).toBeDefined();
    expect(line.getByRole("img", { name: "Inference p50: +20.0 % [+15.0 %, +25.0 %]" })).toBeDefined();
  });

  it("keeps back what lies behind the numbers that decide, until it is asked for", async () => {
    server.current.answer("GET", "/api/v1/comparison", fakeComparison());
    const { user } = await visit("/compare?of=e1,e2");
    const more = await screen.findByRole("button", { name: "Show 1 more metric" });
    expect(screen.queryByRole("row", { name: /p99/ })).toBeNull();
    await user.click(more);
    expect(screen.getByRole("row", { name: /p99/ })).toBeDefined();
    expect(screen.getByRole("button", { name: "Show only metrics that decide", expanded: true })).toBeDefined();
  });

  it("writes a small change finely, a difference of shares in points, and nothing where there is no effect", async () => {
    const effect = fakeContrast().effect;
    if (!effect) throw new Error("it has no effect");
    const contrasts = [
      fakeContrast({ key: "small", effect: { ...effect, value: 1.002, low: 0.999, high: 1.005 } }),
      fakeContrast({ key: "share", effect: { ...effect, scale: "difference", value: -0.0125, low: null, high: null } }),
      fakeContrast({ key: "same", effect: { ...effect, value: 1, low: 1, high: 1 } }),
      fakeContrast({ key: "none", effect: null, conclusion: "insufficient", candidate: null }),
    ];
    server.current.answer("GET", "/api/v1/comparison", fakeComparison({ matches: [fakeMatch({ contrasts })] }));
    await visit("/compare?of=e1,e2");
    expect((await screen.findByRole("row", { name: /^small/ })).textContent).toContain("+0.20 %[−0.10 %, +0.50 %]");
    expect(screen.getByRole("row", { name: /^share/ }).textContent).toContain("−1.25 points");
    expect(screen.getByRole("row", { name: /^same/ }).textContent).toMatch(/\+0\.0 %$/);
    expect(screen.getByRole("row", { name: /^none/ }).textContent).toContain("insufficient");
  });

  it.each([
    ["Hodges-Lehmann ratio; permutation test", /^Change: .* every candidate run by every baseline run/],
    ["paired Hodges-Lehmann ratio; sign-flip test", /^Change: .* inside the pairs of runs/],
  ])("says what the change is that was made by %s", async (method, text) => {
    const { effect } = fakeContrast();
    if (!effect) throw new Error("it has no effect");
    const contrasts = [fakeContrast({ effect: { ...effect, method } })];
    server.current.answer("GET", "/api/v1/comparison", fakeComparison({ matches: [fakeMatch({ contrasts })] }));
    await visit("/compare?of=e1,e2");
    expect((await screen.findByRole("columnheader", { name: "Change" })).title).toMatch(text);
    expect(screen.getByText(text)).toBeDefined();
  });

  it("says what differs between the two, and whether that was allowed", async () => {
    server.current.answer("GET", "/api/v1/comparison", fakeComparison());
    await visit("/compare?of=e1,e2");
    expect((await screen.findByRole("row", { name: /engine version/ })).textContent).toContain("1.201.21yes");
  });

  it("says beside the first sentence that the two are not comparable", async () => {
    const { differences } = fakeMatch();
    const matches = [fakeMatch({ differences: differences.map((one) => ({ ...one, allowed: false })) })];
    server.current.answer("GET", "/api/v1/comparison", fakeComparison({ matches }));
    await visit("/compare?of=e1,e2");
    const sentence = await screen.findByText("Inference p50 is 20 % worse.");
    expect(sentence.parentElement?.textContent).toContain("not comparable, compared anyway");
  });

  it("asks with the terms that the address holds, and puts those that are chosen into it", async () => {
    server.current.answer("GET", "/api/v1/comparison", fakeComparison());
    const { user, address } = await visit("/compare?of=e1,e2&threshold=5%25");
    await screen.findByText("Inference p50 is 20 % worse.");
    expect(server.current.requestsTo("GET", "/api/v1/comparison")[0]?.query).toEqual({ of: "e1,e2", threshold: "5%" });
    await user.click(screen.getByRole("checkbox", { name: /Compare anyway/ }));
    expect(address()).toContain("anyway=true");
  });

  it("tells what to do where nothing is chosen, and why where it is refused", async () => {
    await visit("/compare");
    expect(await screen.findByRole("heading", { name: "Choose two experiments" })).toBeDefined();
    expect(server.current.requestsTo("GET", "/api/v1/comparison")).toHaveLength(0);
    server.current.refuse("GET", "/api/v1/comparison", {
      status: 409,
      detail: "they ran on different machines",
      hint: "say --anyway",
    });
    await visit("/compare?of=e1,e2");
    expect((await screen.findByRole("alert")).textContent).toContain("they ran on different machines");
  });
});
