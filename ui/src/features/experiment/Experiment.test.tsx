import { screen, within } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";

import type { Experiment, ExperimentView, QueuedJob } from "@/api/schema";

import { fakeExperiment, fakeJob, fakeRecipe, fakeView } from "../../../tests/fakes/resources";
import { fakeEntry, fakeResults } from "../../../tests/fakes/results";
import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();
const FAILED = fakeJob({
  id: "x1-002",
  title: "tiny, batch 8",
  state: "failed",
  reason: "out of memory",
  failure: {
    code: "crash",
    message: "the engine died",
    hint: "use a smaller batch",
    phase: "measure",
    detail: "",
    whose: "sut",
  },
});

/** A server that tells of one experiment, and goes on telling by the stream that is returned. */
function serveExperiment(view: ExperimentView, jobs: QueuedJob[]) {
  server.current.answer("GET", "/api/v1/experiments/{experiment_id}", () => view);
  server.current.refuse("GET", "/api/v1/experiments/{experiment_id}/results", { status: 404, detail: "no result yet" });
  server.current.answer("GET", "/api/v1/jobs/{job_id}", (asked) => {
    const queued = jobs.find((job) => asked.path.endsWith(job.id)) ?? fakeJob();
    const { labels, limits, load, measure, workload } = fakeRecipe();
    return {
      queued,
      attempts: [
        {
          number: 1,
          agent_id: "a1",
          leased_at: "2026-11-15T03:00:00Z",
          state: "lost" as const,
          reason: "no word for 60 s",
        },
      ],
      job: {
        id: queued.id,
        experiment_id: "x1",
        name: "nightly",
        cell: {},
        watch: [],
        images: {},
        traceparent: "",
        labels,
        limits,
        load,
        measure,
        seed: 1,
        workload,
      },
    };
  });
  const stream = server.current.openStream("/api/v1/experiments/{experiment_id}/events");
  return {
    begin: async () => {
      // One that is over is followed anew as soon as the page knows that it is.
      await vi.waitFor(() => expect(stream.since).toHaveLength(view.experiment.ended_at ? 2 : 1));
      stream.send("snapshot", { experiment: view, jobs });
    },
    send: (event: string, data: unknown) => stream.send(event, data),
  };
}

describe("the jobs of an experiment", () => {
  it("are a grid of buttons that say their state, and the chosen one tells why it failed", async () => {
    const stream = serveExperiment(fakeView(), [fakeJob({ state: "leased" }), FAILED]);
    const { user, address } = await visit("/experiments/x1?part=jobs");
    await stream.begin();
    const grid = within(await screen.findByRole("list", { name: "Jobs" }));
    expect(grid.getAllByRole("button").map((one) => one.textContent)).toEqual([
      "tiny, batch 1: running",
      "tiny, batch 8: failed",
    ]);
    await user.click(grid.getByRole("button", { name: /batch 8/ }));
    expect(address()).toContain("job=x1-002");
    expect(await screen.findByText("the engine died; use a smaller batch")).toBeDefined();
    expect(await screen.findByText("no word for 60 s")).toBeDefined();
  });

  it("change as the server tells, without being asked for again", async () => {
    const stream = serveExperiment(fakeView(), [fakeJob()]);
    await visit("/experiments/x1?part=jobs");
    await stream.begin();
    expect(await screen.findByRole("button", { name: /^tiny, batch 1\s*: waiting$/ })).toBeDefined();
    stream.send("job", fakeJob({ state: "complete" }));
    expect(await screen.findByRole("button", { name: /^tiny, batch 1\s*: complete$/ })).toBeDefined();
    expect(server.current.requestsTo("GET", "/api/v1/experiments/{experiment_id}")).toHaveLength(1);
  });

  it("run until the agent has sent the result, also when the measurement is over", async () => {
    const job = fakeJob({ state: "leased" });
    const stream = serveExperiment(fakeView(), [job]);
    await visit("/experiments/x1?part=jobs");
    await stream.begin();
    stream.send("progress", {
      kind: "finished",
      job_id: job.id,
      done: 0,
      total: 0,
      state: "complete",
      message: "",
      phase: "",
    });
    expect(await screen.findByText("measured, the agent sends the result")).toBeDefined();
    stream.send("progress", {
      kind: "finished",
      job_id: job.id,
      done: 0,
      total: 0,
      state: "failed",
      message: "",
      phase: "",
    });
    expect(await screen.findByText("ended, the agent sends the result")).toBeDefined();
  });

  it("can be tried again one by one where they failed", async () => {
    const stream = serveExperiment(fakeView(), [FAILED]);
    server.current.answer("POST", "/api/v1/jobs/{job_id}/retry", fakeJob({ id: "x1-002" }));
    const { user } = await visit("/experiments/x1?part=jobs");
    await stream.begin();
    await user.click(await screen.findByRole("button", { name: "Retry this job" }));
    await vi.waitFor(() => expect(server.current.requestsTo("POST", "/api/v1/jobs/{job_id}/retry")).toHaveLength(1));
    expect(server.current.requestsTo("POST", "/api/v1/jobs/{job_id}/retry")[0]?.path).toBe("/api/v1/jobs/x1-002/retry");
  });

  it("are drawn without their names where there are many, and read aloud with them", async () => {
    const jobs = Array.from({ length: 80 }, (_, index) => fakeJob({ id: `x1-${index}`, title: `batch ${index}` }));
    const stream = serveExperiment(fakeView({ experiment: fakeExperiment({ job_count: 80 }) }), jobs);
    await visit("/experiments/x1?part=jobs");
    await stream.begin();
    expect(await screen.findByRole("button", { name: /^batch 79\s*: waiting$/ })).toBeDefined();
    expect(screen.getByRole("heading", { name: "80 jobs" })).toBeDefined();
  });
});

describe("the page of an experiment", () => {
  const ended = (over: Partial<Experiment> = {}) =>
    fakeView({
      experiment: fakeExperiment({ state: "complete", ended_at: "2026-11-15T03:03:14Z", ...over }),
      counts: { complete: 2 },
    });
  const done = fakeJob({
    state: "complete",
    agent_id: "a1",
    leased_at: "2026-11-15T03:03:00Z",
    ended_at: "2026-11-15T03:03:14Z",
  });
  const earlier = (id: string, day: number, state: Experiment["state"] = "complete") =>
    fakeView({ experiment: fakeExperiment({ id, state, created_at: `2026-11-${day}T03:00:00Z` }) });

  it("says how long it ran and how long it waited", async () => {
    const stream = serveExperiment(ended(), [done]);
    await visit("/experiments/x1?part=jobs");
    await stream.begin();
    expect(await screen.findByText("ran 14 s, waited 3 min")).toBeDefined();
  });

  it("leads to the history of its recipe, to its matrix by the settings it varies, and to its agents", async () => {
    const recipe = fakeRecipe({
      matrix: { "workload.batch_size": [1, 8], exclude: [] } as unknown as ReturnType<typeof fakeRecipe>["matrix"],
    });
    const stream = serveExperiment(ended({ recipe }), [done]);
    await visit("/experiments/x1?part=jobs");
    await stream.begin();
    const links = within(await screen.findByRole("navigation", { name: "Related pages" }));
    const addressOf = (name: string) => links.getByRole("link", { name }).getAttribute("href");
    await links.findByRole("link", { name: "Agent a1" });
    expect(addressOf("Agent a1")).toBe("/fleet/a1");
    expect(addressOf("History of this recipe")).toBe("/history?name=nightly");
    expect(addressOf("Matrix")).toBe("/matrix?ids=x1&rows=workload.batch_size");
  });

  it("has stored answers scored again, and offers that only where there are scores", async () => {
    serveExperiment(ended(), [done]);
    const scored = fakeEntry("x1-001", { items: { "rouge_1.mean": { lever: 0.5 } } });
    const shown = vi.fn(() => fakeResults({ entries: [scored] }));
    server.current.answer("GET", "/api/v1/experiments/{experiment_id}/results", shown);
    server.current.answer("POST", "/api/v1/experiments/{experiment_id}/score", { jobs: ["x1-001"] });
    const { user } = await visit("/experiments/x1?part=recipe");
    const before = shown.mock.calls.length;
    await user.click(await screen.findByRole("button", { name: "Score again" }));
    await vi.waitFor(() => expect(shown.mock.calls.length).toBeGreaterThan(before));
    const asked = server.current.requestsTo("POST", "/api/v1/experiments/{experiment_id}/score");
    expect(asked.map((one) => one.body)).toEqual([{ jobs: {} }]);
  });

  it("offers to change its recipe before it is run again", async () => {
    serveExperiment(ended(), []);
    await visit("/experiments/x1?part=recipe");
    const link = await screen.findByRole("link", { name: "Edit and run" });
    expect(link.getAttribute("href")).toBe("/run?from=x1");
  });

  it("is compared with the newest run of its recipe before it that has numbers", async () => {
    serveExperiment(ended(), []);
    server.current.answer("GET", "/api/v1/experiments", (asked) => {
      expect(asked.query.name).toBe("nightly");
      const items = [
        earlier("later", 16),
        ended(),
        earlier("broken", 14, "failed"),
        earlier("good", 13),
        earlier("old", 12),
      ];
      return { items, next: null };
    });
    await visit("/experiments/x1?part=recipe");
    await vi.waitFor(() =>
      expect(screen.getAllByRole("link", { name: "Compare" }).map((one) => one.getAttribute("href"))).toContain(
        "/compare?of=good%2Cx1",
      ),
    );
  });
});
