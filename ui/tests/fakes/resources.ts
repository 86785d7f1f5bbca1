// Fake experiments, agents, recipes and the like as the server would send them; each test overrides what it is about.
import type {
  Agent,
  Alarm,
  Catalogue,
  Example,
  Experiment,
  ExperimentRow,
  ExperimentView,
  Glance,
  KindCard,
  LotFit,
  QueuedJob,
  Recipe,
  RecipeCheck,
  Schedule,
} from "../../src/api/schema";

const AT = "2026-11-15T03:00:00Z";

export function fakeRow(over: Partial<ExperimentRow> = {}): ExperimentRow {
  return {
    id: "x1",
    name: "nightly",
    kind: "model",
    state: "complete",
    created_at: AT,
    ended_at: AT,
    job_count: 2,
    counts: { complete: 2 },
    labels: {},
    submitted_by: "",
    trend: [],
    grade: "valid",
    gates: null,
    headline: {
      job_id: "x1-001",
      title: "tiny",
      metric: "inference_ms.p50",
      unit: "ms",
      better: "lower",
      value: 12.3456,
      low: 12.1,
      high: 12.6,
    },
    ...over,
  };
}

export function fakeGlance(over: Partial<Glance> = {}): Glance {
  return {
    agents: 1,
    changes: [],
    failed: [],
    failed_gates: [],
    incidents: [],
    recent: [fakeRow()],
    running: [],
    troubles: [],
    stats: {
      agents: { active: 1 },
      ended_last_hour: 2,
      experiments: 1,
      jobs: {},
      oldest_lease_s: null,
      oldest_waiting_s: null,
    },
    ...over,
  };
}

export function fakeAgent(over: Partial<Agent> = {}): Agent {
  return {
    id: "a1",
    name: "rack-7",
    state: "active",
    device_key: "d1",
    incarnation: "i1",
    created_at: AT,
    seen_at: AT,
    strikes: 0,
    reason: "",
    job_id: null,
    capabilities: { engines: [], abilities: [], facts: {}, labels: {}, metrics_address: "", version: "1" },
    ...over,
  };
}

export function fakeJob(over: Partial<QueuedJob> = {}): QueuedJob {
  return {
    id: "x1-001",
    experiment_id: "x1",
    title: "tiny, batch 1",
    state: "waiting",
    attempt: 0,
    cancel_asked: false,
    cell: { "workload.batch_size": 1 },
    created_at: AT,
    labels: {},
    priority: 0,
    reason: "",
    ...over,
  };
}

export function fakeRecipe(over: Partial<Recipe> = {}): Recipe {
  return {
    name: "nightly",
    description: "",
    labels: {},
    watch: [],
    units: [],
    gates: [],
    alarms: [],
    matrix: { exclude: [] },
    limits: { timeout: "10m" },
    load: {
      clients: { count: "auto", pinned: true } as unknown as Recipe["load"]["clients"],
      cache: "as-is",
      drain: "30s",
      errors: "5%",
      repeats: 5,
      same_text: false,
      seeds: {} as Recipe["load"]["seeds"],
      slo: {},
      timeout: "60s",
      warmup: "auto",
    },
    measure: {
      check: true,
      energy_window: "2s",
      isolation: "exec",
      max_time: "10m",
      page_cache: "as-is",
      repeats: 5,
      runs: 50,
      warmup: "auto",
    },
    place: { attempts: 2, devices: "any", priority: 0, where: {} },
    workload: {
      kind: "model",
      model: "zoo:tiny",
      engine: "onnxruntime",
      unit: "cpu",
      precision: "default",
      batch_size: 1,
      outputs: "device",
      options: {},
      inputs: {} as Extract<Recipe["workload"], { kind: "model" }>["inputs"],
    },
    ...over,
  };
}

export function fakeExperiment(over: Partial<Experiment> = {}): Experiment {
  return {
    id: "x1",
    name: "nightly",
    state: "running",
    base: "",
    created_at: AT,
    dialect: "",
    job_count: 2,
    notes: [],
    recipe: fakeRecipe(),
    recipe_text: "name: nightly\n",
    submitted_by: "",
    ...over,
  };
}

export function fakeView(over: Partial<ExperimentView> = {}): ExperimentView {
  return { experiment: fakeExperiment(), counts: { waiting: 1, leased: 1 }, priority: 0, submitted_by: "", ...over };
}

export function fakeLot(over: Partial<LotFit> = {}): LotFit {
  return {
    jobs: 2,
    demand: {
      kind: "model",
      engine: "onnxruntime",
      unit: "cpu",
      agents: 1,
      containers: [],
      own_command: false,
      where: {},
    },
    agents: [
      { agent_id: "a1", agent_name: "rack-7", state: "active", fits: true, lacks: [] },
      {
        agent_id: "a2",
        agent_name: "old-box",
        state: "active",
        fits: false,
        lacks: [{ fact: "engine", wanted: "onnxruntime", has: "openvino", reason: "" }],
      },
    ],
    ...over,
  };
}

export function fakeCheck(over: Partial<RecipeCheck> = {}): RecipeCheck {
  return {
    name: "nightly",
    kind: "model",
    dialect: "",
    jobs: 2,
    notes: [],
    problems: [],
    runnable: true,
    lots: [fakeLot()],
    planned: [
      { title: "tiny, batch 1", cell: {} },
      { title: "tiny, batch 8", cell: {} },
    ],
    expected: { seconds: 250, basis: "the last time" },
    ...over,
  };
}

export function fakeExample(over: Partial<Example> = {}): Example {
  return {
    name: "quickstart",
    file: "quickstart.yaml",
    kind: "model",
    summary: "two small models",
    text: "name: quickstart\nworkload:\n  kind: model\n",
    ...over,
  };
}

/** A kind that no page has ever heard of. */
export function fakeKind(over: Partial<KindCard> = {}): KindCard {
  return {
    name: "hashing",
    is_installed: true,
    note: "",
    has_load: false,
    example: "",
    ...over,
  };
}

export function fakeCatalogue(over: Partial<Catalogue> = {}): Catalogue {
  const listNames = (name: string) => [{ name, about: "" }];
  return {
    drivers: listNames("openai-chat"),
    engines: listNames("onnxruntime"),
    models: listNames("zoo:tiny"),
    services: listNames("redis"),
    tasks: [],
    by_path: { "workload.engine": listNames("onnxruntime"), "workload.driver": listNames("openai-chat") },
    comparison_rules: [{ name: "prony", about: "intervals and tests" }],
    axes: ["device", "engine"],
    metric_titles: { "inference_ms.p50": "Inference p50" },
    ...over,
  };
}

export function fakeSchedule(over: Partial<Schedule> = {}): Schedule {
  return {
    id: "s1",
    name: "every night",
    recipe: "nightly",
    state: "active",
    created_at: AT,
    created_by: "",
    fires: 3,
    missed: 0,
    next_at: AT,
    last_at: AT,
    submission: { text: "name: nightly\n", name: "recipe.yaml", overrides: [] },
    timing: { cron: "0 3 * * *", zone: "UTC", missed: "once" },
    ...over,
  };
}

export function fakeAlarm(over: Partial<Alarm> = {}): Alarm {
  return {
    id: "al1",
    name: "ops",
    when: "regression",
    severity: "warning",
    quiet: "10m",
    again: "24h",
    open: 0,
    to: [],
    via: [],
    recipe: null,
    labels: {},
    owner: null,
    created_at: AT,
    created_by: "",
    ...over,
  };
}
