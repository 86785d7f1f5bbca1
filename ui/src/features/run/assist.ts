// The schema in, an editor's help out: completion of keys and values, and what a key means under the pointer.
import { autocompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import type { Extension } from "@codemirror/state";
import { hoverTooltip } from "@codemirror/view";

import { keyAt, placeAt } from "./place";
import { helpFor, keysAt, type Known, type SchemaNode, valuesAt } from "./schema";

/** Names that a value may have beyond what the schema lists, by its dotted path: engines, models, drivers. */
export type Names = Record<string, readonly Known[]>;

export function assist(schema: SchemaNode, names: Names): Extension {
  return [
    autocompletion({ override: [(context) => completed(context, schema, names)], icons: false }),
    hoverTooltip((view, at) => {
      const text = view.state.doc.toString();
      const key = keyAt(text, at);
      const help = key && helpFor(schema, key.path, kindOf(text));
      if (!key || !help?.about) return null;
      return { pos: key.from, end: key.to, above: true, create: () => ({ dom: card(help) }) };
    }),
  ];
}

function completed(context: CompletionContext, schema: SchemaNode, names: Names): CompletionResult | null {
  const text = context.state.doc.toString();
  const place = placeAt(text, context.pos);
  if (/^\s*#/.test(context.state.doc.lineAt(context.pos).text)) return null;
  if (!context.explicit && place.prefix === "" && place.key === null) return null;
  const kind = kindOf(text);
  if (place.key === null) {
    const options = keysAt(schema, place.path, kind).map((one) => option(one, `${one.name}: `));
    return { from: place.from, options, validFor: /^[\w.$-]*$/ };
  }
  const dotted = [...place.path, place.key].join(".");
  const found = [...valuesAt(schema, place.path, place.key, kind), ...(names[dotted] ?? [])];
  const options = [...new Map(found.map((one) => [one.name, one])).values()].map((one) => option(one, plain(one.name)));
  return options.length > 0 ? { from: place.from, options, validFor: /^[\w.:$"-]*$/ } : null;
}

function option(one: Known, apply: string) {
  return { label: one.name, detail: one.detail, info: one.about || undefined, apply } as const;
}

/** The `zoo:tiny` of YAML must be quoted inside of `{}`, and may be anywhere. */
function plain(value: string): string {
  return value.includes(":") ? JSON.stringify(value) : value;
}

export function kindOf(text: string): string | null {
  return /\bkind:\s*"?(\w+)/.exec(text)?.[1] ?? null;
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
