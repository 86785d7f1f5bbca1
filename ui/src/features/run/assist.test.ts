import { CompletionContext } from "@codemirror/autocomplete";
import { EditorState } from "@codemirror/state";
import { describe, expect, it } from "vitest";

import { completeAt, explainKey, findKind, SYNTAX } from "./assist";
import type { SchemaNode } from "./schema";

const SCHEMA: SchemaNode = {
  properties: {
    name: { type: "string", description: "what it is called" },
    workload: { oneOf: [{ $ref: "#/$defs/Hashing" }, { $ref: "#/$defs/Sorting" }], description: "what is measured" },
  },
  $defs: {
    Hashing: {
      properties: {
        kind: { const: "hashing" },
        engine: { type: "string", description: "what runs it" },
        check: { type: "boolean" },
      },
    },
    Sorting: { properties: { kind: { const: "sorting" }, driver: { type: "string" } } },
  },
};
const NAMES = {
  "workload.engine": [
    { name: "onnxruntime", about: "", detail: "" },
    { name: "zoo:x", about: "", detail: "" },
  ],
};

/** The text as it becomes when each of the offers is taken; `|` is where one writes. */
function listOffers(format: "yaml" | "json", marked: string, isAsked = true): string[] {
  const at = marked.indexOf("|");
  const text = marked.replace("|", "");
  const context = new CompletionContext(EditorState.create({ doc: text }), at, isAsked);
  const found = completeAt(context, SCHEMA, NAMES, SYNTAX[format]);
  return (found?.options ?? []).map(
    (one) => text.slice(0, found?.from) + String(one.apply) + text.slice(found?.to ?? at),
  );
}

describe("what an editor offers", () => {
  it("is keys of the kind that is written, in YAML and in JSON alike", () => {
    expect(listOffers("yaml", "workload:\n  kind: sorting\n  dr|")).toContain("workload:\n  kind: sorting\n  driver: ");
    expect(listOffers("json", '{"workload": {"kind": "sorting", "dr|')).toContain(
      '{"workload": {"kind": "sorting", "driver": ',
    );
    expect(listOffers("json", '{"workload": {"kind": "sorting", |}}').some((text) => text.includes("engine"))).toBe(
      false,
    );
    expect(listOffers("json", "{|}")).toEqual(['{"name": }', '{"workload": }']);
  });

  it("replaces the quotes that are there already", () => {
    expect(listOffers("json", '{"na|"}')).toContain('{"name": }');
    expect(listOffers("json", '{"workload": {"kind": "ha|"}}')).toContain('{"workload": {"kind": "hashing"}}');
  });

  it("is values, quoted where the format wants that", () => {
    expect(listOffers("yaml", "workload:\n  kind: hashing\n  engine: |")).toEqual([
      "workload:\n  kind: hashing\n  engine: onnxruntime",
      'workload:\n  kind: hashing\n  engine: "zoo:x"',
    ]);
    expect(listOffers("json", '{"workload": {"kind": "hashing", "engine": |}}')[0]).toBe(
      '{"workload": {"kind": "hashing", "engine": "onnxruntime"}}',
    );
    expect(listOffers("json", '{"workload": {"kind": "hashing", "check": |}}')).toEqual([
      '{"workload": {"kind": "hashing", "check": true}}',
      '{"workload": {"kind": "hashing", "check": false}}',
    ]);
  });

  it("goes by where one writes, over several lines, lists and what is closed already", () => {
    const text =
      '{\n  "name": "a, {b}: \\"c\\"",\n  "workload": {\n    "kind": "hashing",\n    "engine": ["onnxruntime", |]\n  }\n}';
    expect(listOffers("json", text)).toHaveLength(2);
    expect(listOffers("json", '{"workload": {"kind": "hashing"}, |}').some((one) => one.includes('"name": '))).toBe(
      true,
    );
  });

  it("is nothing beside a word that is whole, unless it is asked for", () => {
    expect(listOffers("yaml", "workload:\n  kind: hashing\n  engine: onnx|", false)).toHaveLength(2);
    expect(listOffers("yaml", "workload:\n  kind: hashing\n  engine: onnxruntime|", false)).toEqual([]);
    expect(listOffers("yaml", 'workload:\n  kind: hashing\n  engine: "zoo:x"|', false)).toEqual([]);
    expect(listOffers("yaml", "workload:\n  kind: hashing\n  engine: onnxruntime|")).toHaveLength(2);
  });

  it("is nothing in a comment", () => {
    expect(listOffers("yaml", "# na|")).toEqual([]);
  });
});

describe("what an editor explains", () => {
  it.each([
    ["yaml", "workload:\n  kind: hashing\n  engine: x\n"],
    ["json", '{"workload": {"kind": "hashing", "engine": "x"}}'],
  ] as const)("is the key under the pointer, in %s", (format, text) => {
    const found = explainKey(text, text.indexOf("engine") + 2, SCHEMA, SYNTAX[format]);
    expect(found?.help).toMatchObject({ name: "engine", about: "what runs it", detail: "string" });
    expect(found && text.slice(found.from, found.to)).toBe("engine");
    expect(explainKey(text, text.indexOf("x") + 1, SCHEMA, SYNTAX[format])).toBeNull();
  });

  it("depends on the kind, however that is written", () => {
    expect(findKind("kind: hashing")).toBe("hashing");
    expect(findKind('{"kind" : "sorting"}')).toBe("sorting");
    expect(findKind("name: x")).toBeNull();
  });
});
