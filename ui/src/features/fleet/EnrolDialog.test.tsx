import { screen } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";

import type { About } from "@/api/schema";

import { fakeAgent } from "../../../tests/fakes/resources";
import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();
const ABOUT: About = { asks_tokens: true, grafana: "", prometheus: "", name: "", role: "admin", url: "", version: "1" };
const TOKEN = { id: "t1", name: "rack-8", role: "agent" as const, once: true, created_at: "2026-11-15T03:00:00Z" };

beforeEach(() => {
  server.current
    .answer("GET", "/api/v1/agents", { items: [fakeAgent()], next: null })
    .answer("GET", "/api/v1/queue", { lots: [], waiting: 0, leased: 0 })
    .answer("GET", "/api/v1/about", ABOUT);
});

describe("an agent that comes", () => {
  it("is enrolled by a command with a token for one agent, one time, which is no argument of it", async () => {
    server.current.answer("POST", "/api/v1/tokens", { secret: "prony_once", token: TOKEN });
    const { user, client } = await visit("/fleet");
    await user.click(await screen.findByRole("button", { name: "Enrol an agent" }));
    await user.type(await screen.findByLabelText("What is the token for?"), "rack-8");
    await user.click(screen.getByRole("button", { name: /Make a token/ }));
    const command = (await screen.findByText(/prony agent start/)).textContent;
    expect(command.split("\n")).toContain("prony_once");
    expect(command.split("\n").at(-1)).not.toContain("prony_once");
    expect(server.current.requestsTo("POST", "/api/v1/tokens")[0]?.body).toEqual({
      name: "rack-8",
      role: "agent",
      once: true,
      expires_in_s: 3600,
    });
    expect(screen.getByText("Waiting for the agent …")).toBeDefined();
    server.current.answer("GET", "/api/v1/agents", {
      items: [fakeAgent(), fakeAgent({ id: "a2", name: "rack-8" })],
      next: null,
    });
    await client.invalidateQueries({ queryKey: ["agents"] });
    expect(await screen.findByText("rack-8 came")).toBeDefined();
  });

  it("needs no token where the server asks nobody for one", async () => {
    server.current.answer("GET", "/api/v1/about", { ...ABOUT, asks_tokens: false });
    const { user } = await visit("/fleet");
    await user.click(await screen.findByRole("button", { name: "Enrol an agent" }));
    expect((await screen.findByText(/prony agent start/)).textContent).not.toContain("token");
  });

  it("is not enrolled by a name that the server refuses, and it says why", async () => {
    server.current.refuse("POST", "/api/v1/tokens", {
      status: 422,
      detail: "a name has letters, digits, dots and dashes",
      hint: "leave out the space",
    });
    const { user } = await visit("/fleet");
    await user.click(await screen.findByRole("button", { name: "Enrol an agent" }));
    await user.type(await screen.findByLabelText("What is the token for?"), "rack 8");
    await user.click(screen.getByRole("button", { name: /Make a token/ }));
    expect((await screen.findByRole("alert")).textContent).toContain("leave out the space");
  });
});

describe("an agent that is there", () => {
  it("is shown with a full disk where it has one, and how much room it needs", async () => {
    const reason = "disk full: 12 MiB are free at /srv/spool, 256 MiB are needed";
    server.current.answer("GET", "/api/v1/agents", { items: [fakeAgent({ state: "disk_full", reason })], next: null });
    await visit("/fleet");
    expect((await screen.findByText("disk full")).className).toContain("tone-bad");
    expect(screen.getByText(reason)).toBeDefined();
  });

  it("is drained by one click, and removed only when that is meant", async () => {
    server.current.answer("POST", "/api/v1/agents/{agent_id}/drain", fakeAgent({ state: "draining" }));
    const { user } = await visit("/fleet");
    await user.click(await screen.findByRole("button", { name: "Drain" }));
    expect(await screen.findByText("rack-7 gets no more jobs")).toBeDefined();
    await user.click(screen.getByRole("button", { name: "Remove" }));
    expect(screen.getByRole("heading", { name: "Remove rack-7?" })).toBeDefined();
    await user.click(screen.getByRole("button", { name: "Keep as it is" }));
    expect(server.current.requestsTo("DELETE", "/api/v1/agents/{agent_id}")).toHaveLength(0);
  });
});
