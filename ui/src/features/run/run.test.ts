import { describe, expect, it } from "vitest";

import { detectFormat } from "./format";
import { findKey, locateInYaml } from "./yaml";
import { markProblems } from "./problems";
import { newKey } from "./queries";
import { findHelp, listKeys, listValues, type SchemaNode } from "./schema";

const SCHEMA: SchemaNode = {
  properties: {
    name: { type: "string", description: "what it is called" },
    workload: { oneOf: [{ $ref: "#/$defs/Hashing" }, { $ref: "#/$defs/Sorting" }], description: "what is measured" },
    matrix: { patternProperties: { "^workload\\..+$": { description: "the values of one axis" } } },
  },
  $defs: {
    Hashing: {
      properties: {
        kind: { const: "hashing" },
        engine: { type: "string", examples: ["onnxruntime"], description: "what runs it" },
        check: { type: "boolean" },
      },
    },
    Sorting: {
      properties: { kind: { const: "sorting" }, driver: { type: "string" }, mode: { enum: ["a", "b"], default: "a" } },
    },
  },
};

function locate(marked: string) {
  const place = locateInYaml(marked.replace("|", ""), marked.indexOf("|"));
  return { path: place.path.join("."), key: place.key, prefix: place.prefix };
}

describe("where one writes", () => {
  it.each([
    ["na|", "", null, "na"],
    ["name: x\nworkload:\n  ki|", "workload", null, "ki"],
    ["workload:\n  kind: mo|", "workload", "kind", "mo"],
    ["workload:\n  kind: hashing\nmea|", "", null, "mea"],
    ["workload: {kind: hashing, en|", "workload", null, "en"],
    ["workload: {kind: hashing, engine: on|", "workload", "engine", "on"],
    ["load:\n  closed: {concurrency: 8}\n  du|", "load", null, "du"],
    ["measure:\n  until: {ci: 2%, ma|", "measure.until", null, "ma"],
    ["alarms:\n  - name: slow\n    wh|", "alarms", null, "wh"],
    ["# a: b\n|", "", null, ""],
  ])("%j", (marked, path, key, prefix) => {
    expect(locate(marked)).toEqual({ path, key, prefix });
  });

  it("finds the key under the pointer, and none under a value", () => {
    const text = "workload:\n  engine: onnxruntime\n";
    expect(findKey(text, text.indexOf("engine") + 2)?.path).toEqual(["workload", "engine"]);
    expect(findKey(text, text.indexOf("onnx") + 2)).toBeNull();
  });
});

describe("what may stand there", () => {
  it("offers the keys of the kind that is written, and of all where none is", () => {
    const names = (kind: string | null) => listKeys(SCHEMA, ["workload"], kind).map((one) => one.name);
    expect(names("sorting")).toEqual(["kind", "driver", "mode"]);
    expect(names(null)).toEqual(["kind", "engine", "check", "driver", "mode"]);
    expect(listKeys(SCHEMA, []).map((one) => one.name)).toEqual(["name", "workload", "matrix"]);
    expect(listKeys(SCHEMA, ["nothing"])).toEqual([]);
  });

  it("offers values: words, examples, yes and no", () => {
    const values = (key: string, kind: string) => listValues(SCHEMA, ["workload"], key, kind).map((one) => one.name);
    expect(values("kind", "")).toEqual(["hashing", "sorting"]);
    expect(values("engine", "hashing")).toEqual(["onnxruntime"]);
    expect(values("mode", "sorting")).toEqual(["a", "b"]);
    expect(values("check", "hashing")).toEqual(["true", "false"]);
  });

  it("says what a key means", () => {
    expect(findHelp(SCHEMA, ["workload", "engine"], "hashing")).toMatchObject({
      about: "what runs it",
      detail: "string",
    });
    expect(findHelp(SCHEMA, ["workload", "mode"], "sorting")?.detail).toContain('default "a"');
    expect(findHelp(SCHEMA, ["matrix", "workload.batch_size"])?.about).toBe("the values of one axis");
    expect(findHelp(SCHEMA, ["nobody"])).toBeNull();
  });
});

describe("what is wrong", () => {
  const problem = { path: "", message: "wrong", hint: "", source: "", line: null, column: null };

  it("is marked at its word, with the fix that the hint names", () => {
    const text = "workload:\n  engin: x\n";
    const [mark] = markProblems(text, [
      { ...problem, path: "workload.engin", hint: "did you mean workload.engine?", line: 2, column: 3 },
    ]);
    expect(mark && text.slice(mark.from, mark.to)).toBe("engin");
    expect(mark?.fix).toBe("engine");
  });

  it("is marked inside of quotes, which stay", () => {
    const text = '{"workload": {"engin": "x"}}';
    const [mark] = markProblems(text, [
      { ...problem, path: "workload.engin", hint: "did you mean engine?", line: 1, column: 15 },
    ]);
    expect(mark && text.slice(mark.from, mark.to)).toBe("engin");
    expect(mark?.fix).toBe("engine");
  });

  it("stays within the text, wherever the server says that it stands", () => {
    for (const text of ["", "a", "a: [\n"])
      for (const line of [null, 1, 99]) {
        const [mark] = markProblems(text, [{ ...problem, line, column: 50 }]);
        expect(mark && mark.from >= 0 && mark.from <= mark.to && mark.to <= text.length).toBe(true);
      }
  });
});

describe("texts", () => {
  it("are known by their look", () => {
    expect(detectFormat('{"name": "x"}')).toBe("json");
    expect(detectFormat('[info]\ntask_name = "x"\n[hardware]\n')).toBe("toml");
    expect(detectFormat("# a = b\nname: x\nworkload:\n  kind: hashing\n")).toBe("yaml");
    expect(detectFormat("")).toBe("yaml");
  });
});

describe("a submission's key", () => {
  it("is new each time, also where a page has no crypto.randomUUID", () => {
    const keys = new Set(Array.from({ length: 100 }, newKey));
    expect(keys.size).toBe(100);
    for (const key of keys) expect(key).toMatch(/^[0-9a-f]{32}$/);
  });
});
