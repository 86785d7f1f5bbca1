// Fake readings and histories of a device as the server would send them; each test overrides what it is about.
import type { DeviceHistory, RecentReadings } from "../../src/api/schema";

export function fakeReadings(over: Partial<RecentReadings> = {}): RecentReadings {
  const at = [0, 5, 10].map((second) => new Date(Date.UTC(2026, 10, 15, 3, 0, second)).toISOString());
  return {
    agent_id: "a1",
    at,
    lines: [
      { name: "cpu_busy_s_total", title: "CPU busy", unit: "%", part: "host", values: [null, 12.5, 50] },
      { name: "gpu0_power_w", title: "GPU 0 power", unit: "W", part: "gpu0", values: [70, 410, 655] },
    ],
    ...over,
  };
}

export function fakeDeviceHistory(over: Partial<DeviceHistory> = {}): DeviceHistory {
  const result = {
    job_id: "x1-001",
    experiment_id: "x1",
    title: "tiny",
    ended_at: "2026-11-15T03:00:00Z",
    grade: "valid" as const,
    canary: { compute_ms: 1 },
    noise: 0.01,
  };
  return {
    agent_id: "a1",
    results: [result, { ...result, job_id: "x1-002", canary: { compute_ms: 1.3 }, noise: 0.04 }],
    calibrations: [],
    conditions: [
      { code: "governor", title: "CPU governor", status: "pass", value: "performance", hint: "" },
      { code: "load", title: "other work", status: "warn", value: "1.7 cores busy", hint: "stop other programs" },
    ],
    checked_at: "2026-11-15T02:59:00Z",
    ...over,
  };
}
