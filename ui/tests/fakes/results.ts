// Fake results and sections of a kind that no page has ever heard of, as the server would send them.
import type { Entry, JobPlot, JobSections, ShownResults } from "../../src/api/schema";

import { fakeEstimate } from "./analysis";
import { fakeExperiment, fakeRecipe } from "./resources";

const AT = "2026-11-15T03:00:00Z";

export function fakeEntry(id = "x1-001", over: Partial<Entry["summary"]> = {}): Entry {
  const { labels, limits, load, measure, workload } = fakeRecipe();
  return {
    folder: "/results",
    job: {
      id,
      experiment_id: "x1",
      name: "hashes",
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
    result: {
      version: 1,
      prony_version: "1",
      job_id: id,
      experiment_id: "x1",
      state: "complete",
      started_at: AT,
      checksums: {},
      inputs: [],
      repetitions: [],
    },
    summary: {
      job_id: id,
      title: id,
      canary: {},
      cell: {},
      counts: {},
      estimates: {
        "hash_ms.p50": fakeEstimate({ value: 2, low: 1.9, high: 2.1 }),
        "clash_share.mean": fakeEstimate({ value: 0.05, low: 0.04, high: 0.06, unit: "1" }),
      },
      excluded: {},
      headline: "hash_ms.p50",
      items: {},
      metrics: {},
      missing: [],
      outlier_count: 0,
      outliers: [],
      quantiles: "type 8",
      run_counts: {},
      runs: {},
      sensitivity: {},
      spread: {},
      steady_from: {},
      used: [],
      verdict: { grade: "valid", reasons: [] },
      ...over,
    },
    environment: {
      checksums: {},
      clock: {},
      labels: {},
      state: { conditions: [], taken_at: AT, values: {} },
      device: {
        name: "bench-1",
        hardware_id: "h1",
        software_id: "s1",
        hardware: { cpu: { architecture: "aarch64", caches: {}, flags: [] }, gpus: [] },
        software: {
          environment: {},
          kernel: "6.1",
          mitigations: {},
          os: "linux",
          packages: {},
          prony: "1",
          python: "3.11",
        },
      },
    },
  };
}

export function fakeResults(over: Partial<ShownResults> = {}): ShownResults {
  return {
    experiment: fakeExperiment({ state: "complete", ended_at: AT }),
    entries: [fakeEntry("x1-001"), fakeEntry("x1-002")],
    gates: [],
    damages: [],
    plots: [],
    answers: [],
    columns: [
      { key: "hash_ms.p50", label: "one hash", unit: "ms", better: "lower", format: "number", is_headline: true },
      { key: "clash_share.mean", label: "clashes", unit: "1", better: "neither", format: "share", is_headline: false },
    ],
    programs: { "x1-001": [["Digest", "256 bits"]], "x1-002": [] },
    exports: [{ name: "digests", about: "every digest as a line" }],
    ...over,
  };
}

export function fakeSections(over: Partial<JobSections> = {}): JobSections {
  return {
    job_id: "x1-001",
    title: "tiny",
    kind: "hashing",
    sections: [
      {
        title: "Samples",
        note: "",
        facts: [],
        tables: [],
        figures: [
          { type: "distribution", title: "How long hashes take" },
          { type: "lines", title: "Hash after hash" },
        ],
        is_open: false,
      },
      {
        title: "What was hashed",
        note: "The same bytes each time.",
        facts: [
          ["algorithm", "sha256"],
          ["salt", null],
        ],
        tables: [{ title: "Every hash", headings: ["run", "ms"], rows: [["0", "2.01"]], numeric: [1] }],
        figures: [],
        is_open: false,
      },
    ],
    ...over,
  };
}

export function fakeJobPlot(over: Partial<JobPlot> = {}): JobPlot {
  return {
    title: "Decode over batch",
    x_title: "sequences at the same time",
    y_title: "tokens written per second",
    notes: ["4800 GB/s is the published peak."],
    lines: [
      {
        name: "depth 0",
        role: "line",
        points: [
          { x: 1, y: 40, y_low: 38, y_high: 42, label: "batch 1", is_void: true },
          { x: 8, y: 320, label: "batch 8", is_void: false },
        ],
      },
      { name: "memory allows, depth 0", role: "bound", points: [{ x: 1, y: 300, label: "", is_void: false }] },
    ],
    ...over,
  };
}
