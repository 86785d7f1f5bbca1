// Fake analysis results as the server would send them, whole and typed; each test overrides what it is about.
import type {
  Change,
  Comparison,
  Contrast,
  Curve,
  Distribution,
  Estimate,
  History,
  Match,
  MatrixReport,
  Point,
  Series,
} from "../../src/api/schema";

export function fakeEstimate(over: Partial<Estimate> = {}): Estimate {
  return {
    value: 10,
    unit: "ms",
    low: 9,
    high: 11,
    confidence: 0.95,
    count: 10,
    level: "run",
    method: "median",
    ...over,
  };
}

export function fakePoint(index: number, over: Partial<Point> = {}): Point {
  const value = over.value ?? 10 + (index % 3) * 0.1;
  return {
    series_id: "s1",
    job_id: `e${index}-001`,
    experiment_id: `e${index}`,
    measured_at: `2026-11-${String((index % 28) + 1).padStart(2, "0")}T03:00:00Z`,
    grade: "valid",
    value,
    values: { "inference_ms.p50": value },
    facts: { commit: `c${index}`, kernel: "6.1" },
    metrics: {},
    canary: {},
    watch: [],
    ...over,
  };
}

export function fakeSeries(over: Partial<Series> = {}): Series {
  return {
    id: "s1",
    name: "nightly",
    title: "nightly batch=1",
    branch: "",
    machine: "bench-1",
    hardware_id: "h1",
    metric: "inference_ms.p50",
    unit: "ms",
    better: "lower",
    state: "regression",
    learned: 20,
    wanted: 20,
    runs: 30,
    last_at: "2026-11-15T03:00:00Z",
    last_value: 12,
    note: "",
    ...over,
  };
}

export function fakeChange(over: Partial<Change> = {}): Change {
  return {
    id: "c1",
    series_id: "s1",
    name: "nightly",
    title: "nightly batch=1",
    branch: "",
    machine: "bench-1",
    metric: "inference_ms.p50",
    unit: "ms",
    unsettled: false,
    machine_changed: false,
    better: "lower",
    kind: "regression",
    state: "found",
    job_id: "e20-001",
    experiment_id: "e20",
    measured_at: "2026-11-15T03:00:00Z",
    last_good_job_id: "e19-001",
    noticed_at: "2026-11-15T03:10:00Z",
    commits: ["aaa", "bbb"],
    before: { median: 10, low: 9.9, high: 10.1, runs: 20 },
    after: { median: 12, low: 11.8, high: 12.2, runs: 5 },
    effect: 0.2,
    low: 0.18,
    high: 0.22,
    p: 0.001,
    noise: {},
    facts: [],
    beside: {},
    path: [],
    settle: "",
    sentence: "Inference p50 is 20 % worse since e20-001.",
    ...over,
  };
}

export function fakeHistory(over: Partial<History> = {}): History {
  const points = Array.from({ length: 25 }, (_, index) =>
    fakePoint(index, index < 20 ? {} : { value: 12, values: { "inference_ms.p50": 12 } }),
  );
  return {
    series: fakeSeries(),
    metric: "inference_ms.p50",
    unit: "ms",
    better: "lower",
    points,
    segments: [
      {
        first_job_id: "e0-001",
        last_job_id: "e19-001",
        begin: 0,
        end: 20,
        level: { median: 10.1, low: 10, high: 10.2, runs: 20 },
      },
      {
        first_job_id: "e20-001",
        last_job_id: "e24-001",
        begin: 20,
        end: 25,
        level: { median: 12, low: 11.8, high: 12.2, runs: 5 },
      },
    ],
    changes: [fakeChange()],
    sentence: "It got worse.",
    ...over,
  };
}

export function fakeMatrix(over: Partial<MatrixReport> = {}): MatrixReport {
  const cell = (row: string, column: string, value: number) => ({
    row,
    column,
    jobs: [`${row}-${column}`],
    estimate: fakeEstimate({ value, low: value * 0.9, high: value * 1.1 }),
    grade: "valid" as const,
    worths: [],
    mark: "" as const,
    work: "",
    note: "",
  });
  return {
    experiments: ["e1"],
    terms: { rows: "batch", columns: "threads" },
    metric: "inference_ms.p50",
    unit: "ms",
    better: "lower",
    rows: ["1", "8"],
    columns: ["1", "4"],
    cells: [cell("1", "1", 10), cell("1", "4", 40), cell("8", "1", 20)],
    pareto: [
      {
        row: "1",
        column: "1",
        value: fakeEstimate(),
        against: fakeEstimate({ value: 2, unit: "USD", low: 1.9, high: 2.1 }),
        is_front: true,
      },
      {
        row: "1",
        column: "4",
        value: fakeEstimate({ value: 40, low: null, high: null }),
        against: fakeEstimate({ value: 3, unit: "USD" }),
        is_front: false,
      },
    ],
    notes: [],
    ...over,
  };
}

export function fakeCurve(over: Partial<Curve> = {}): Curve {
  const level = (load: number, rate: number, excluded = "") => ({
    load,
    jobs: [`j${load}`],
    throughput: fakeEstimate({ value: rate, unit: "1/s", low: rate * 0.95, high: rate * 1.05 }),
    p50: fakeEstimate({ value: (1000 * load) / rate, low: null, high: null }),
    p99: fakeEstimate({ value: (2000 * load) / rate }),
    checks: [],
    grade: excluded ? ("void" as const) : ("valid" as const),
    excluded,
    ended_early: "" as const,
  });
  return {
    title: "redis",
    noun: "users",
    levels: [level(1, 100), level(2, 190), level(4, 240), level(8, 245), level(16, 246, "the client was the limit")],
    knee: {
      state: "found",
      estimate: fakeEstimate({ value: 2.4, unit: "users", low: 2.1, high: 2.8 }),
      text: "a knee",
    },
    limit: {
      state: "found",
      estimate: fakeEstimate({ value: 244, unit: "1/s", low: 238, high: 250 }),
      text: "a limit",
    },
    slo: { state: "found", estimate: fakeEstimate({ value: 4, unit: "users", low: null, high: null }), text: "holds" },
    ...over,
  };
}

export function fakeDistribution(over: Partial<Distribution> = {}): Distribution {
  return {
    job_id: "e1-001",
    title: "tiny",
    metric: "inference_ms",
    unit: "ms",
    better: "lower",
    metrics: ["inference_ms"],
    count: 10,
    is_log: false,
    edges: [1, 2, 3],
    counts: [4, 6],
    ecdf: [
      { value: 1.5, low: 1.4, high: 1.6, share: 0.4 },
      { value: 2.5, low: 2.4, high: 2.6, share: 1 },
    ],
    runs: [],
    estimates: { "inference_ms.p50": fakeEstimate({ value: 2, low: 1.8, high: 2.2 }) },
    ...over,
  };
}

export function fakeContrast(over: Partial<Contrast> = {}): Contrast {
  return {
    key: "inference_ms.p50",
    doubt: "",
    unit: "ms",
    better: "lower",
    role: "headline",
    family: "inference_ms",
    baseline: fakeEstimate(),
    candidate: fakeEstimate({ value: 12, low: 11.5, high: 12.5 }),
    effect: {
      scale: "ratio",
      value: 1.2,
      low: 1.15,
      high: 1.25,
      confidence: 0.95,
      p: 0.001,
      q: 0.001,
      delta: 1,
      runs: [10, 10],
      counted: "runs",
      noise: 0.01,
      detectable: 0.02,
      apart_calibrated: null,
      apart_results: 0,
      method: "Hodges-Lehmann",
    },
    conclusion: "regression",
    sentence: "20 % slower",
    more_runs: null,
    ...over,
  };
}

export function fakeMatch(over: Partial<Match> = {}): Match {
  const side = (id: string) => ({
    experiment_id: id,
    job_id: `${id}-001`,
    title: "tiny",
    cell: {},
    verdict: { grade: "valid" as const, reasons: [] },
  });
  return {
    title: "tiny",
    baseline: side("e1"),
    candidate: side("e2"),
    interleaved: false,
    differences: [{ kind: "software", path: "engine version", baseline: "1.20", candidate: "1.21", allowed: true }],
    contrasts: [
      fakeContrast(),
      fakeContrast({ key: "inference_ms.p99", role: "supporting", conclusion: "inconclusive" }),
    ],
    ...over,
  };
}

export function fakeComparison(over: Partial<Comparison> = {}): Comparison {
  return {
    terms: { threshold: "3%", metrics: [], across: [], anyway: false, rule: "prony", level: 0.01 },
    baseline: "e1",
    candidates: ["e2"],
    matches: [fakeMatch()],
    unmatched: [],
    notes: [],
    conclusion: "regression",
    sentence: "Inference p50 is 20 % worse.",
    ...over,
  };
}
