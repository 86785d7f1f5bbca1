// Editor assistance from the recipe's schema: completion of keys and values, and help on hover.
import { autocompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import type { Extension } from "@codemirror/state";
import { hoverTooltip } from "@codemirror/view";

import { locateInJson, quoteForJson } from "./json";
import { type CursorContext, findKey, locateInYaml } from "./yaml";
import { findHelp, listKeys, listValues, type SchemaNode, type Suggestion } from "./schema";

/** Names that a value may have beyond what the schema lists, by its dotted path. */
export type Names = Record<string, readonly Suggestion[]>;

interface FormatSyntax {
  locate: (text: string, at: number) => CursorContext;
  key: (name: string) => string;
  value: (name: string) => string;
  comment: RegExp | null;
}

/** How each format is written, where there is help with it. */
export const SYNTAX: Record<"yaml" | "json", FormatSyntax> = {
  yaml: { locate: locateInYaml, key: (name) => `${name}: `, value: quoteForYaml, comment: /^\s*#/ },
  json: { locate: locateInJson, key: (name) => `${JSON.stringify(name)}: `, value: quoteForJson, comment: null },
};

export function createAssistance(schema: SchemaNode, names: Names, syntax: FormatSyntax): Extension {
  return [
    autocompletion({ override: [(context) => completeAt(context, schema, names, syntax)], icons: false }),
    hoverTooltip((view, at) => {
      const found = explainKey(view.state.doc.toString(), at, schema, syntax);
      return (
        found && { pos: found.from, end: found.to, above: true, create: () => ({ dom: buildHelpCard(found.help) }) }
      );
    }),
  ];
}

/** What the key under a place means, and where it stands. */
export function explainKey(
  text: string,
  at: number,
  schema: SchemaNode,
  syntax: FormatSyntax,
): { from: number; to: number; help: Suggestion } | null {
  const key = findKey(text, at, syntax.locate);
  const help = key && findHelp(schema, key.path, findKind(text));
  return key && help?.about ? { from: key.from, to: key.to, help } : null;
}

export function completeAt(
  context: CompletionContext,
  schema: SchemaNode,
  names: Names,
  syntax: FormatSyntax,
): CompletionResult | null {
  const text = context.state.doc.toString();
  const place = syntax.locate(text, context.pos);
  if (syntax.comment?.test(context.state.doc.lineAt(context.pos).text)) return null;
  // The quote that an editor closes by itself belongs to the word.
  const to = text[place.from] === '"' && text[context.pos] === '"' ? context.pos + 1 : context.pos;
  if (!context.explicit && place.prefix === "" && place.key === null) return null;
  const kind = findKind(text);
  const dotted = [...place.path, place.key].join(".");
  const found =
    place.key === null
      ? listKeys(schema, place.path, kind)
      : [...listValues(schema, place.path, place.key, kind), ...(names[dotted] ?? [])];
  const offered = new Map(found.map((one) => [one.name, one]));
  // A word that is whole needs no list, whose Enter would swallow the end of the line.
  const isWhole = (typed: string): boolean => !context.explicit && offered.has(typed.replaceAll('"', ""));
  if (offered.size === 0 || isWhole(place.prefix)) return null;
  const write = place.key === null ? syntax.key : syntax.value;
  return {
    from: place.from,
    to,
    options: [...offered.values()].map((one) => buildOption(one, write(one.name))),
    validFor: (typed) => /^[\w.:$"-]*$/.test(typed) && !isWhole(typed),
  };
}

function buildOption(one: Suggestion, apply: string) {
  // What is typed is compared with the label, and may begin with a quote.
  const label = apply.startsWith('"') ? `"${one.name}` : one.name;
  return { label, displayLabel: one.name, detail: one.detail, info: one.about || undefined, apply } as const;
}

/** The `zoo:tiny` of YAML must be quoted inside of `{}`, and may be anywhere. */
function quoteForYaml(value: string): string {
  return value.includes(":") ? JSON.stringify(value) : value;
}

export function findKind(text: string): string | null {
  return /\bkind"?\s*:\s*"?(\w+)/.exec(text)?.[1] ?? null;
}

function buildHelpCard(help: Suggestion): HTMLElement {
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
