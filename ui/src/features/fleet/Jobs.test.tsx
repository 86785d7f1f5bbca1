import { screen } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";

import { fakeJob } from "../../../tests/fakes/resources";
import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();

beforeEach(() => {
  server.current
    .answer("GET", "/api/v1/agents", { items: [], next: null })
    .answer("GET", "/api/v1/queue", { lots: [], waiting: 0, leased: 0 });
});

describe("the jobs of all experiments", () => {
  it("are chosen by their state, which the address holds, and lead to where they are told in full", async () => {
    server.current.answer("GET", "/api/v1/jobs", (asked) => ({
      items: [
        asked.query["state"] === "failed"
          ? fakeJob({ id: "x2-001", experiment_id: "x2", title: "broken", state: "failed", reason: "it crashed" })
          : fakeJob(),
      ],
      next: null,
    }));
    const { user, address } = await visit("/fleet?part=jobs");
    expect(await screen.findByRole("link", { name: "tiny, batch 1" })).toBeDefined();
    await user.selectOptions(screen.getByLabelText("State"), "failed");
    expect((await screen.findByRole("row", { name: /broken/ })).textContent).toContain("it crashed");
    expect(address()).toContain("state=failed");
    expect(screen.getByRole("link", { name: "broken" }).getAttribute("href")).toBe(
      "/experiments/x2?part=jobs&job=x2-001",
    );
  });
});
