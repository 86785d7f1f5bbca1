// The schema in, an editor's help out: completion of keys and values, and what a key means under the pointer.
import { autocompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import type { Extension } from "@codemirror/state";
import { hoverTooltip } from "@codemirror/view";

import { inJson, placeInJson } from "./json";
import { keyAt, type Place, placeAt } from "./place";
import { helpFor, keysAt, type Known, type SchemaNode, valuesAt } from "./schema";

/** Names that a value may have beyond what the schema lists, by its dotted path: engines, models, drivers. */
export type Names = Record<string, readonly Known[]>;

interface Way {
  placed: (text: string, at: number) => Place;
  key: (name: string) => string;
  value: (name: string) => string;
  comment: RegExp | null;
}

/** How each format is written, where there is help with it. */
export const WAYS: Record<"yaml" | "json", Way> = {
  yaml: { placed: placeAt, key: (name) => `${name}: `, value: plain, comment: /^\s*#/ },
  json: { placed: placeInJson, key: (name) => `${JSON.stringify(name)}: `, value: inJson, comment: null },
};

export function assist(schema: SchemaNode, names: Names, way: Way): Extension {
  return [
    autocompletion({ override: [(context) => completed(context, schema, names, way)], icons: false }),
    hoverTooltip((view, at) => {
      const found = explained(view.state.doc.toString(), at, schema, way);
      return found && { pos: found.from, end: found.to, above: true, create: () => ({ dom: card(found.help) }) };
    }),
  ];
}

/** What the key under a place means, and where it stands. */
export function explained(text: string, at: number, schema: SchemaNode, way: Way): { from: number; to: number; help: Known } | null {
  const key = keyAt(text, at, way.placed);
  const help = key && helpFor(schema, key.path, kindOf(text));
  return key && help?.about ? { from: key.from, to: key.to, help } : null;
}

export function completed(context: CompletionContext, schema: SchemaNode, names: Names, way: Way): CompletionResult | null {
  const text = context.state.doc.toString();
  const place = way.placed(text, context.pos);
  if (way.comment?.test(context.state.doc.lineAt(context.pos).text)) return null;
  // The quote that an editor closes by itself belongs to the word.
  const to = text[place.from] === '"' && text[context.pos] === '"' ? context.pos + 1 : context.pos;
  if (!context.explicit && place.prefix === "" && place.key === null) return null;
  const kind = kindOf(text);
  if (place.key === null) {
    const options = keysAt(schema, place.path, kind).map((one) => option(one, way.key(one.name)));
    return { from: place.from, to, options, validFor: /^"?[\w.$-]*$/ };
  }
  const dotted = [...place.path, place.key].join(".");
  const found = [...valuesAt(schema, place.path, place.key, kind), ...(names[dotted] ?? [])];
  const options = [...new Map(found.map((one) => [one.name, one])).values()].map((one) => option(one, way.value(one.name)));
  return options.length > 0 ? { from: place.from, to, options, validFor: /^[\w.:$"-]*$/ } : null;
}

function option(one: Known, apply: string) {
  // What is typed is compared with the label, and may begin with a quote.
  const label = apply.startsWith('"') ? `"${one.name}` : one.name;
  return { label, displayLabel: one.name, detail: one.detail, info: one.about || undefined, apply } as const;
}

/** The `zoo:tiny` of YAML must be quoted inside of `{}`, and may be anywhere. */
function plain(value: string): string {
  return value.includes(":") ? JSON.stringify(value) : value;
}

export function kindOf(text: string): string | null {
  return /\bkind"?\s*:\s*"?(\w+)/.exec(text)?.[1] ?? null;
}

function card(help: Known): HTMLElement {
  const dom = document.createElement("div");
  dom.className = "cm-help";
  const head = document.createElement("strong");
  head.textContent = help.name;
  const detail = document.createElement("em");
  detail.textContent = help.detail ? ` ${help.detail}` : "";
  const about = document.createElement("p");
  about.textContent = help.about;
  dom.append(head, detail, about);
  return dom;
}
