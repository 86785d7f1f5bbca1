import { screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";

import { fakeDeviceHistory, fakeReadings } from "../../../tests/fakes/device";
import { fakeAgent, fakeJob } from "../../../tests/fakes/resources";
import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();

beforeEach(() => {
  server.current
    .answer("GET", "/api/v1/agents/{agent_id}", fakeAgent())
    .answer("GET", "/api/v1/jobs", { items: [fakeJob({ state: "leased" })], next: null })
    .answer("GET", "/api/v1/agents/{agent_id}/readings", fakeReadings())
    .answer("GET", "/api/v1/agents/{agent_id}/history", fakeDeviceHistory());
});

describe("the page of a device", () => {
  it("shows the newest readings of the host, and those of a GPU when it is chosen", async () => {
    const { user, address } = await visit("/fleet/a1");
    const now = await screen.findByRole("list", { name: "rack-7 now" });
    expect(within(now).getByRole("listitem").textContent).toContain("CPU busy50.0 %");
    await user.selectOptions(screen.getByLabelText("Part"), "GPU 0");
    expect(within(screen.getByRole("list", { name: "rack-7 now" })).getByText("655 W")).toBeDefined();
    expect(address()).toBe("/fleet/a1?part=gpu0");
  });

  it("leads to the job that runs, and puts what disturbs first", async () => {
    await visit("/fleet/a1");
    const job = await screen.findByRole("link", { name: "tiny, batch 1" });
    expect(job.getAttribute("href")).toBe("/experiments/x1?part=jobs&job=x1-001");
    const rows = within(await screen.findByRole("region", { name: "Conditions" })).getAllByRole("row");
    expect(rows[1]?.textContent).toBe("disturbsother work1.7 cores busystop other programs");
  });

  it("draws the canary against its median, and each result's noise", async () => {
    const { user } = await visit("/fleet/a1");
    const figure = within(await screen.findByRole("region", { name: "Over time" }));
    await user.click(await figure.findByRole("button", { name: "Show as a table" }));
    const last = figure.getAllByRole("row").at(-1);
    expect(last?.textContent).toContain("1.30 ms");
    expect(last?.textContent).toContain("4.00 %");
  });

  it("says why there is nothing to see of an agent that is lost", async () => {
    server.current
      .answer("GET", "/api/v1/agents/{agent_id}", fakeAgent({ state: "lost" }))
      .answer("GET", "/api/v1/agents/{agent_id}/readings", fakeReadings({ at: [], lines: [] }))
      .answer("GET", "/api/v1/agents/{agent_id}/history", {
        agent_id: "a1",
        results: [],
        calibrations: [],
        conditions: [],
      });
    await visit("/fleet/a1");
    expect(await screen.findByRole("heading", { name: "rack-7 is lost" })).toBeDefined();
    expect(await screen.findByRole("heading", { name: "Not checked yet" })).toBeDefined();
  });

  it("of an agent that is gone has a title and a way back", async () => {
    server.current.refuse("GET", "/api/v1/agents/{agent_id}", { status: 404, detail: "no agent a9" });
    await visit("/fleet/a9");
    expect(await screen.findByRole("heading", { name: "No agent a9" })).toBeDefined();
    expect(screen.getByRole("link", { name: "All agents" }).getAttribute("href")).toBe("/fleet");
  });

  it("of an older agent says that it does not tell what it can run", async () => {
    await visit("/fleet/a1");
    expect(await screen.findByText(/its Prony is too old/)).toBeDefined();
  });

  it("lists what the agent can run, and why not", async () => {
    const abilities = [
      {
        kind: "service" as const,
        name: "qdrant",
        state: "missing" as const,
        path: "",
        means: ["image"],
        reason: "qdrant not found on PATH",
      },
    ];
    const capabilities = {
      engines: [],
      abilities,
      facts: { access: ["gray", "black"] },
      labels: {},
      metrics_address: "",
      version: "1",
    };
    server.current.answer("GET", "/api/v1/agents/{agent_id}", fakeAgent({ capabilities }));
    await visit("/fleet/a1");
    expect(await screen.findByText("qdrant not found on PATH")).toBeDefined();
    expect(screen.getByText("gray, black")).toBeDefined();
  });
});
