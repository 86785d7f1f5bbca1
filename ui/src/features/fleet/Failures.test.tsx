import { screen } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";

import type { FailureGroup } from "@/api/schema";

import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();
const GROUP: FailureGroup = {
  code: "lease_lost",
  whose: "prony",
  message: "agent a was silent",
  hint: "see the agent's log",
  failures: 3,
  jobs: 2,
  agents: { a: 2, b: 1 },
  recipes: { nightly: 3 },
  days: { "2026-03-01": 3 },
  first_at: "2026-03-01T12:00:00Z",
  last_at: "2026-03-01T13:00:00Z",
  newest_job: "x1-001",
  newest_experiment: "x1",
};

beforeEach(() => {
  server.current
    .answer("GET", "/api/v1/agents", { items: [], next: null })
    .answer("GET", "/api/v1/queue", { lots: [], waiting: 0, leased: 0 });
});

function answer(groups: FailureGroup[]) {
  const since = "2026-02-22T12:00:00Z";
  server.current.answer("GET", "/api/v1/failures", {
    since,
    failures: 3,
    jobs: 2,
    agents: 2,
    groups,
    is_cut: false,
  });
}

describe("the failures of a fleet", () => {
  it("are shown by cause, with a way to the newest job", async () => {
    answer([GROUP]);
    await visit("/fleet?part=failures");
    const row = await screen.findByRole("row", { name: /lease_lost/ });
    expect(row.textContent).toContain("a (2), b (1)");
    expect(screen.getByRole("link", { name: "x1-001" }).getAttribute("href")).toBe(
      "/experiments/x1?part=jobs&job=x1-001",
    );
  });

  it("are said to be none where there are none", async () => {
    answer([]);
    await visit("/fleet?part=failures");
    expect(await screen.findByText("No failures in the last 7 days")).toBeDefined();
  });
});
