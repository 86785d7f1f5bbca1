import { screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";

import type { ExperimentRow } from "@/api/schema";

import { fakeRow } from "../../../tests/fakes/resources";
import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();
let items: ExperimentRow[] = [];

beforeEach(() => {
  items = [
    fakeRow({ id: "x2", created_at: "2026-11-15T04:00:00Z", state: "running" }),
    fakeRow({ id: "x1", created_at: "2026-11-15T03:00:00Z" }),
  ];
  server.current.answer("GET", "/api/v1/listing", () => ({
    items,
    next: null,
    total: items.length,
    states: {},
    labels: [],
    kinds: [],
  }));
});

async function chooseAll() {
  const visited = await visit("/experiments");
  await visited.user.click(await screen.findByRole("checkbox", { name: "Choose all" }));
  return { ...visited, bar: within(screen.getByRole("region", { name: "Chosen experiments" })) };
}

describe("experiments that are chosen in the list", () => {
  it("are counted, and compared with the oldest as the baseline", async () => {
    const { bar, address } = await chooseAll();
    expect(bar.getByText("2 chosen")).toBeDefined();
    expect(bar.getByRole("link", { name: "Compare" }).getAttribute("href")).toBe("/compare?of=x1%2Cx2");
    expect(bar.getByRole("link", { name: "Matrix" }).getAttribute("href")).toBe("/matrix?ids=x1%2Cx2");
    expect(address()).toBe("/experiments");
  });

  it("can be chosen one by one, and left again", async () => {
    const { user } = await visit("/experiments");
    await user.click(await screen.findByRole("checkbox", { name: "Choose nightly x1" }));
    expect(screen.getByText("1 chosen")).toBeDefined();
    await user.click(screen.getByRole("checkbox", { name: "Choose nightly x1" }));
    expect(screen.queryByRole("region", { name: "Chosen experiments" })).toBeNull();
  });

  it("are deleted after a question, those that run by force", async () => {
    server.current.answer("DELETE", "/api/v1/experiments/{experiment_id}", (asked) => {
      items = items.filter((row) => !asked.path.endsWith(row.id));
      return undefined;
    });
    const { bar, user } = await chooseAll();
    await user.click(bar.getByRole("button", { name: "Delete" }));
    await user.click(await screen.findByRole("button", { name: "Delete 2" }));
    await vi.waitFor(() =>
      expect(
        server.current
          .requestsTo("DELETE", "/api/v1/experiments/{experiment_id}")
          .map(({ path, query }) => [path.split("/").at(-1), query.force]),
      ).toEqual([
        ["x2", "true"],
        ["x1", "false"],
      ]),
    );
    expect(await screen.findByText("No experiments yet")).toBeDefined();
    expect(screen.queryByRole("region", { name: "Chosen experiments" })).toBeNull();
  });
});
