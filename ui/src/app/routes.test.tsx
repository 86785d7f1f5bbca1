import { createMemoryHistory, createRouter } from "@tanstack/react-router";
import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { fakeServer } from "../../tests/server";
import { visit } from "../../tests/visit";

import { routeTree } from "./routes";

fakeServer();

describe("an address with a choice that no page offers", () => {
  it.each([
    ["/settings", "part"],
    ["/fleet", "part"],
    ["/fleet", "state"],
    ["/experiments", "state"],
    ["/experiments", "grade"],
    ["/experiments", "gates"],
    ["/experiments", "sort"],
    ["/experiments/x1", "part"],
    ["/experiments/x1", "view"],
    ["/compare", "view"],
    ["/compare", "anyway"],
    ["/history", "state"],
    ["/history", "changes"],
    ["/matrix", "against"],
  ])("opens %s without its %s", async (path, key) => {
    const history = createMemoryHistory({ initialEntries: [`${path}?${key}=nonsense`] });
    const router = createRouter({ routeTree, history });
    await router.load();
    expect(router.state.matches.at(-1)?.search).toHaveProperty(key, undefined);
  });

  it("shows the first part and leads to the others", async () => {
    const { user, address } = await visit("/settings?part=audit");
    expect((await screen.findByRole("tab", { selected: true })).textContent).toBe("Tokens");
    await user.click(screen.getByRole("tab", { name: "Theme" }));
    expect(address()).toBe("/settings?part=look");
  });
});
