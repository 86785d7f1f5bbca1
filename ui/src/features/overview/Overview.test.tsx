import { screen, waitFor, within } from "@testing-library/react";
import { describe, expect, it, onTestFinished } from "vitest";

import type { About } from "@/api/schema";

import { fakeGlance, fakeRow } from "../../../tests/fakes/resources";
import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();

function findCard(title: string) {
  const heading = screen.getByRole("heading", { name: title });
  return within(heading.closest("section") ?? document.body);
}

describe("the overview", () => {
  it("counts as running what an agent has, and lists apart what waits", async () => {
    const glance = fakeGlance();
    server.current.answer(
      "GET",
      "/api/v1/overview",
      fakeGlance({
        running: [
          fakeRow({ id: "x1", name: "busy", state: "running", counts: { leased: 2, complete: 1 } }),
          fakeRow({ id: "x2", name: "patient", state: "running", counts: { waiting: 2 } }),
          fakeRow({ id: "x3", name: "new", state: "pending", counts: { waiting: 2 } }),
        ],
        stats: { ...glance.stats, jobs: { leased: 2, waiting: 4 } },
      }),
    );
    await visit("/");
    expect(await screen.findByText("of 1 experiment")).toBeDefined();
    const listNames = (title: string) =>
      findCard(title)
        .getAllByRole("link")
        .map((one) => one.textContent);
    expect(listNames("Running now")).toEqual(["busy"]);
    expect(listNames("Waiting")).toEqual(["patient", "new"]);
  });

  it("says which experiments failed and why, and leads to their jobs", async () => {
    server.current.answer(
      "GET",
      "/api/v1/overview",
      fakeGlance({
        failed: [
          {
            experiment_id: "x9",
            name: "broken",
            state: "failed",
            ended_at: "2026-11-15T03:00:00Z",
            text: "the engine died",
          },
        ],
      }),
    );
    await visit("/");
    const card = within((await screen.findByText("Needs attention")).closest("section") ?? document.body);
    expect(card.getByText("failed")).toBeDefined();
    expect(card.getByText(/the engine died/)).toBeDefined();
    expect(card.getByRole("link", { name: "broken" }).getAttribute("href")).toBe("/experiments/x9?part=jobs");
  });

  it.each([
    ["http://127.0.0.1:8000/", true, "prony agent start --server http://127.0.0.1:8000"],
    [
      "https://prony.example.org/",
      true,
      "prony agent start --server https://prony.example.org --token-file enrol.token",
    ],
    ["https://prony.example.org/", false, "prony agent start --server https://prony.example.org"],
  ])("starts the first agent with a token where it needs one: %s, %s", async (url, asksTokens, command) => {
    const before = location.href;
    const { happyDOM } = window as unknown as { happyDOM: { setURL: (url: string) => void } };
    onTestFinished(() => happyDOM.setURL(before));
    happyDOM.setURL(url);
    const about = {
      asks_tokens: asksTokens,
      grafana: "",
      prometheus: "",
      name: "",
      role: "admin",
      url: "",
      version: "1",
    };
    server.current
      .answer("GET", "/api/v1/overview", fakeGlance({ agents: 0, stats: { ...fakeGlance().stats, experiments: 0 } }))
      .answer("GET", "/api/v1/recipes/examples", { items: [] })
      .answer("GET", "/api/v1/about", about as About);
    await visit("/");
    const shown = await screen.findByLabelText("The command that starts an agent");
    await waitFor(() => expect(shown.textContent).toBe(command));
  });
});
