import { screen } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";

import { fakePlacement, fakeTarget } from "../../../tests/fakes/targets";
import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();

beforeEach(() => {
  server.current
    .answer("GET", "/api/v1/agents", { items: [], next: null })
    .answer("GET", "/api/v1/queue", { lots: [], waiting: 0, leased: 0 });
});

describe("the targets of a fleet", () => {
  it("are shown with what is there, why it waits, and a way to each job", async () => {
    server.current
      .answer("GET", "/api/v1/targets", { items: [fakeTarget()], next: null })
      .answer("GET", "/api/v1/targets/{target}/placements", { items: [fakePlacement()], next: null });
    await visit("/fleet?part=targets");
    expect((await screen.findByRole("row", { name: /slurm/ })).textContent).toContain("2 queued, 1 running");
    const placed = await screen.findByRole("row", { name: /x1-001/ });
    expect(placed.textContent).toContain("no suitable node is free yet (Resources)");
    expect(placed.textContent).toContain("4711");
    expect(screen.getByRole("link", { name: "x1-001" }).getAttribute("href")).toBe(
      "/experiments/x1?part=jobs&job=x1-001",
    );
  });

  it("say how one gets there while there are none", async () => {
    server.current.answer("GET", "/api/v1/targets", { items: [], next: null });
    await visit("/fleet?part=targets");
    expect(await screen.findByText("prony agent start --on TARGET")).toBeDefined();
  });
});
