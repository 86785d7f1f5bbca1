import { cleanup, screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";

import { fakeDistribution } from "../../../tests/fakes/analysis";
import { fakeExperiment, fakeKind, fakeView } from "../../../tests/fakes/resources";
import { fakeEntry, fakeResults, fakeSections } from "../../../tests/fakes/results";
import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();
const NOTE = "The kind of workload 'hashing' is not installed here: install what brings it to see its own sections.";

beforeEach(() => {
  const experiment = fakeExperiment({ state: "complete", ended_at: "2026-11-15T03:00:00Z" });
  server.current
    .answer("GET", "/api/v1/experiments/{experiment_id}", fakeView({ experiment, counts: { complete: 2 } }))
    .answer("GET", "/api/v1/experiments/{experiment_id}/results", fakeResults())
    .answer("GET", "/api/v1/kinds", { items: [fakeKind()] })
    .answer("GET", "/api/v1/jobs/{job_id}/sections", fakeSections())
    .answer("GET", "/api/v1/jobs/{job_id}/distribution", fakeDistribution({ metric: "hash_ms" }))
    .answer("GET", "/api/v1/jobs/{job_id}/lines", {
      job_id: "x1-001",
      title: "tiny",
      lines: [
        {
          metric: "hash_ms",
          unit: "ms",
          labels: {},
          rank: null,
          repetition: 0,
          steps: [0, 1],
          values: [2, 3],
          total: 2,
        },
      ],
    });
});

describe("results of a kind that the pages have never heard of", () => {
  it("stand in the columns that the server names, with which way is better, and shares in percent", async () => {
    await visit("/experiments/x1");
    const table = within(await screen.findByRole("region", { name: "Numbers of every job" }));
    expect(table.getAllByRole("columnheader").map((one) => one.textContent)).toEqual([
      "Job",
      "Verdict",
      "one hash",
      "clashes",
    ]);
    expect(table.getByTitle("hash_ms.p50, lower is better")).toBeDefined();
    expect(table.getAllByText("[1.90, 2.10]")).toHaveLength(2);
    expect(table.getAllByText("[4, 6]")).toHaveLength(2);
    expect(screen.getByPlaceholderText("hash_ms.p50 <= 20; …")).toBeDefined();
  });

  it("of one job alone are its headlines", async () => {
    server.current.answer(
      "GET",
      "/api/v1/experiments/{experiment_id}/results",
      fakeResults({ entries: [fakeEntry()] }),
    );
    await visit("/experiments/x1");
    // The headline, the column and its box in the list of columns.
    expect(await screen.findAllByText("one hash")).toHaveLength(3);
  });

  it("that are void are grey below one banner with the reason", async () => {
    const entry = fakeEntry("x1-002");
    const reasons = [{ code: "contaminated", grade: "void" as const, text: "Other programs took 60 % of the CPU." }];
    const spoilt = { ...entry, summary: { ...entry.summary, verdict: { grade: "void" as const, reasons } } };
    const entries = [fakeEntry("x1-001"), spoilt];
    server.current.answer("GET", "/api/v1/experiments/{experiment_id}/results", fakeResults({ entries }));
    await visit("/experiments/x1");
    const banner = await screen.findByText("Void: 1 of 2 jobs. Do not quote the grey numbers.");
    expect(banner.parentElement?.textContent).toContain("Other programs took 60 % of the CPU.");
    expect(document.querySelectorAll(".greyed .quantity")).toHaveLength(2);
  });

  it("show the columns that somebody chose, which the address keeps", async () => {
    const { user } = await visit("/experiments/x1");
    const table = within(await screen.findByRole("region", { name: "Numbers of every job" }));
    const headings = () => table.getAllByRole("columnheader").map((one) => one.textContent);
    await user.click(screen.getByText("Columns: 2 of 2"));
    await user.click(screen.getByLabelText("clashes"));
    await waitFor(() => expect(headings()).toEqual(["Job", "Verdict", "one hash"]));
    cleanup();
    await visit("/experiments/x1?columns=clash_share.mean");
    const again = within(await screen.findByRole("region", { name: "Numbers of every job" }));
    expect(again.getAllByRole("columnheader").map((one) => one.textContent)).toEqual(["Job", "Verdict", "clashes"]);
  });

  it("have the sections of their kind: notes, facts, what is unknown, and tables", async () => {
    await visit("/experiments/x1?part=details");
    expect(await screen.findByRole("heading", { name: "What was hashed" })).toBeDefined();
    expect(screen.getByText("The same bytes each time.")).toBeDefined();
    expect(screen.getByText("salt").nextSibling?.textContent).toBe("unknown");
    const rows = within(screen.getByRole("region", { name: "Every hash" })).getAllByRole("row");
    expect(rows.map((row) => row.textContent)).toEqual(["runms", "02.01"]);
    expect(screen.queryByRole("heading", { name: "Samples" })).toBeNull();
  });

  it("have the figures that their sections name, and no other", async () => {
    await visit("/experiments/x1?part=samples");
    expect(await screen.findByRole("heading", { name: "How long hashes take" })).toBeDefined();
    expect(await screen.findByRole("img", { name: "tiny step by step" })).toBeDefined();
    expect(server.current.requestsTo("GET", "/api/v1/jobs/{job_id}/timeline")).toHaveLength(0);
    expect(server.current.requestsTo("GET", "/api/v1/jobs/{job_id}/starts")).toHaveLength(0);
  });

  it("can be exported in the formats that the kind brings, and tell what was measured beside the machine", async () => {
    const { user } = await visit("/experiments/x1?part=environment");
    expect(await screen.findByText("256 bits")).toBeDefined();
    await user.click(screen.getByRole("button", { name: "Export" }));
    expect(await screen.findByText("every digest as a line")).toBeDefined();
  });

  it("are shown as far as they are known where the server lacks the kind, with what is missing", async () => {
    const missing = { title: "Not installed", note: NOTE, facts: [], tables: [], figures: [], is_open: false };
    server.current.answer("GET", "/api/v1/jobs/{job_id}/sections", fakeSections({ sections: [missing] }));
    const { user, address } = await visit("/experiments/x1?part=samples");
    expect(await screen.findByRole("heading", { name: "This job has no charts" })).toBeDefined();
    expect(screen.getByText(NOTE)).toBeDefined();
    await user.click(screen.getByRole("link", { name: "See its details" }));
    expect(address()).toContain("part=details");
    expect(await screen.findByRole("heading", { name: "Not installed" })).toBeDefined();
  });
});

describe("while it runs", () => {
  it.each([
    [true, 1],
    [false, 0],
  ])("leads to its load where its kind has one: %s", async (hasLoad, links) => {
    const kind = fakeExperiment().recipe.workload.kind;
    server.current
      .answer("GET", "/api/v1/experiments/{experiment_id}", fakeView())
      .answer("GET", "/api/v1/kinds", { items: [fakeKind({ name: kind, has_load: hasLoad })] })
      .openStream("/api/v1/experiments/{experiment_id}/events");
    await visit("/experiments/x1");
    expect(await screen.findByText("0 of 2 jobs ended")).toBeDefined();
    await screen.findByRole("region", { name: "Numbers of every job" });
    expect(screen.queryAllByRole("link", { name: "Load, second by second" })).toHaveLength(links);
  });
});
