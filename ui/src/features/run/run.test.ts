import { describe, expect, it } from "vitest";

import { formatOf } from "./format";
import { keyAt, placeAt } from "./place";
import { marksOf } from "./problems";
import { MODEL, recipeOf, SERVICE } from "./recipe";
import { helpFor, keysAt, type SchemaNode, valuesAt } from "./schema";

const SCHEMA: SchemaNode = {
  properties: {
    name: { type: "string", description: "what it is called" },
    workload: { oneOf: [{ $ref: "#/$defs/Model" }, { $ref: "#/$defs/Service" }], description: "what is measured" },
    matrix: { patternProperties: { "^workload\\..+$": { description: "the values of one axis" } } },
  },
  $defs: {
    Model: { properties: { kind: { const: "model" }, engine: { type: "string", examples: ["onnxruntime"], description: "what runs it" }, check: { type: "boolean" } } },
    Service: { properties: { kind: { const: "service" }, driver: { type: "string" }, mode: { enum: ["a", "b"], default: "a" } } },
  },
};

function at(marked: string) {
  const place = placeAt(marked.replace("|", ""), marked.indexOf("|"));
  return { path: place.path.join("."), key: place.key, prefix: place.prefix };
}

describe("where one writes", () => {
  it.each([
    ["na|", "", null, "na"],
    ["name: x\nworkload:\n  ki|", "workload", null, "ki"],
    ["workload:\n  kind: mo|", "workload", "kind", "mo"],
    ["workload:\n  kind: model\nmea|", "", null, "mea"],
    ["workload: {kind: model, en|", "workload", null, "en"],
    ["workload: {kind: model, engine: on|", "workload", "engine", "on"],
    ["load:\n  closed: {concurrency: 8}\n  du|", "load", null, "du"],
    ["measure:\n  until: {ci: 2%, ma|", "measure.until", null, "ma"],
    ["alarms:\n  - name: slow\n    wh|", "alarms", null, "wh"],
    ["# a: b\n|", "", null, ""],
  ])("%j", (marked, path, key, prefix) => {
    expect(at(marked)).toEqual({ path, key, prefix });
  });

  it("finds the key under the pointer, and none under a value", () => {
    const text = "workload:\n  engine: onnxruntime\n";
    expect(keyAt(text, text.indexOf("engine") + 2)?.path).toEqual(["workload", "engine"]);
    expect(keyAt(text, text.indexOf("onnx") + 2)).toBeNull();
  });
});

describe("what may stand there", () => {
  it("offers the keys of the kind that is written, and of all where none is", () => {
    const names = (kind: string | null) => keysAt(SCHEMA, ["workload"], kind).map((one) => one.name);
    expect(names("service")).toEqual(["kind", "driver", "mode"]);
    expect(names(null)).toEqual(["kind", "engine", "check", "driver", "mode"]);
    expect(keysAt(SCHEMA, []).map((one) => one.name)).toEqual(["name", "workload", "matrix"]);
    expect(keysAt(SCHEMA, ["nothing"])).toEqual([]);
  });

  it("offers values: words, examples, yes and no", () => {
    const values = (key: string, kind: string) => valuesAt(SCHEMA, ["workload"], key, kind).map((one) => one.name);
    expect(values("kind", "")).toEqual(["model", "service"]);
    expect(values("engine", "model")).toEqual(["onnxruntime"]);
    expect(values("mode", "service")).toEqual(["a", "b"]);
    expect(values("check", "model")).toEqual(["true", "false"]);
  });

  it("says what a key means", () => {
    expect(helpFor(SCHEMA, ["workload", "engine"], "model")).toMatchObject({ about: "what runs it", detail: "string" });
    expect(helpFor(SCHEMA, ["workload", "mode"], "service")?.detail).toContain('default "a"');
    expect(helpFor(SCHEMA, ["matrix", "workload.batch_size"])?.about).toBe("the values of one axis");
    expect(helpFor(SCHEMA, ["nobody"])).toBeNull();
  });
});

describe("what is wrong", () => {
  const problem = { path: "", message: "wrong", hint: "", source: "", line: null, column: null };

  it("is marked at its word, with the fix that the hint names", () => {
    const text = "workload:\n  engin: x\n";
    const [mark] = marksOf(text, [{ ...problem, path: "workload.engin", hint: "did you mean workload.engine?", line: 2, column: 3 }]);
    expect(mark && text.slice(mark.from, mark.to)).toBe("engin");
    expect(mark?.fix).toBe("engine");
  });

  it("stays within the text, wherever the server says that it stands", () => {
    for (const text of ["", "a", "a: [\n"])
      for (const line of [null, 1, 99]) {
        const [mark] = marksOf(text, [{ ...problem, line, column: 50 }]);
        expect(mark && mark.from >= 0 && mark.from <= mark.to && mark.to <= text.length).toBe(true);
      }
  });
});

describe("texts", () => {
  it("are known by their look", () => {
    expect(formatOf('{"name": "x"}')).toBe("json");
    expect(formatOf('[info]\ntask_name = "x"\n[hardware]\n')).toBe("toml");
    expect(formatOf("# a = b\nname: x\nworkload:\n  kind: model\n")).toBe("yaml");
    expect(formatOf("")).toBe("yaml");
  });

  it("are written from the form, quoted where YAML would read something else", () => {
    expect(recipeOf(MODEL)).toBe('name: my-model\nworkload:\n  kind: model\n  model: "zoo:mobilenet-v2"\n  engine: onnxruntime\nmeasure:\n  runs: 50\n  repeats: 5\n');
    expect(recipeOf({ ...MODEL, engines: "onnxruntime, openvino", batches: "1,8" })).toContain("matrix:\n  workload.engine: [onnxruntime, openvino]\n  workload.batch_size: [1, 8]\n");
    expect(recipeOf(SERVICE)).toContain("load.closed.concurrency: [1, 2, 4, 8]");
    expect(recipeOf({ ...SERVICE, users: "3", name: "no" })).toMatch(/^name: "no"[^]*closed: \{concurrency: 3\}/);
  });
});
