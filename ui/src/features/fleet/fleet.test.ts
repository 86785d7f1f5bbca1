import { describe, expect, it } from "vitest";

import type { AbilityReport, Agent } from "@/api/schema";
import { describeDevice } from "@/components/agentFacts";

import { buildAbilityMatrix } from "./abilities";
import { buildCommand } from "./command";

function fakeAgent(id: string, facts: Agent["capabilities"]["facts"], abilities: AbilityReport[] = []): Agent {
  return {
    id,
    name: id,
    state: "active",
    device_key: id,
    incarnation: "i",
    created_at: "2026-01-01T00:00:00Z",
    seen_at: "2026-01-01T00:00:00Z",
    strikes: 0,
    reason: "",
    capabilities: { engines: [], abilities, facts, labels: {}, metrics_address: "", version: "" },
  };
}

describe("who can run what", () => {
  it("has a column for every workload and every engine on every unit that anybody has", () => {
    const { abilities, has } = buildAbilityMatrix([
      fakeAgent("a", {
        kinds: ["hashing", "sorting"],
        engine: "onnxruntime",
        "engine.onnxruntime": "1.2",
        "engine.onnxruntime.unit": ["cpu", "cuda"],
      }),
      fakeAgent("b", { kinds: "hashing" }),
    ]);
    expect(abilities.map((one) => one.label)).toEqual([
      "hashing",
      "sorting",
      "onnxruntime on cpu",
      "onnxruntime on cuda",
    ]);
    expect(has.get("a")?.get("onnxruntime on cuda")).toBe("1.2");
    expect([...(has.get("b")?.keys() ?? [])]).toEqual(["kind hashing"]);
  });

  it("has a column for every service that anybody can start, and the reason of who cannot", () => {
    const report = (kind: AbilityReport["kind"], name: string, over: Partial<AbilityReport> = {}): AbilityReport => ({
      kind,
      name,
      state: "ready",
      version: null,
      path: "",
      means: [],
      reason: "",
      ...over,
    });
    const missing = { state: "missing", reason: "no redis-server on PATH" } as const;
    const { abilities, has, lacks } = buildAbilityMatrix([
      fakeAgent("a", {}, [
        report("service", "redis", { version: "7.0.15" }),
        report("launcher", "mpirun"),
        report("service", "vllm", { state: "missing", reason: "no vllm on PATH" }),
      ]),
      fakeAgent("b", {}, [report("service", "redis", missing), report("container", "docker", { version: "28.1.1" })]),
    ]);
    expect(abilities.map((one) => [one.group, one.label])).toEqual([
      ["service", "redis"],
      ["container", "docker"],
      ["launcher", "mpirun"],
    ]);
    expect(has.get("a")?.get("service redis")).toBe("7.0.15");
    expect(has.get("a")?.get("launcher mpirun")).toBe("yes");
    expect(lacks.get("b")?.get("service redis")).toBe("no redis-server on PATH");
  });

  it("knows nothing of a device that was not told", () => {
    expect(describeDevice(fakeAgent("a", {}))).toBe("");
  });
});

describe("the command that enrols", () => {
  it("carries the secret in a file and never as an argument", () => {
    expect(buildCommand("http://x:1", null)).toBe("prony agent start --server http://x:1");
    const lines = buildCommand("http://x:1", "prony_secret").split("\n");
    expect(lines.at(-1)).toBe("prony agent start --server http://x:1 --token-file enrol.token");
    expect(lines.filter((line) => line.includes("prony_secret"))).toEqual(["prony_secret"]);
  });
});
