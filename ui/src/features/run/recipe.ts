// Builds a recipe's text from the answers to the questions of a form.
import type { FormField } from "@/api/schema";

export interface Answer {
  field: FormField;
  text: string;
}

/** A mapping of a recipe, or a value as it is written. */
type RecipeNode = string | Map<string, RecipeNode>;

export function buildRecipe(kind: string, name: string, answers: readonly Answer[]): string {
  const root = new Map<string, RecipeNode>([["workload", new Map([["kind", quoteWord(kind)]])]]);
  const matrix: string[] = [];
  for (const { field, text } of answers) {
    const values = field.takes_several ? splitAnswers(text) : [text.trim()];
    const written = values.map((value) => (field.is_text ? quoteWord(value) : value));
    if (values.length > 1) matrix.push(`  ${field.path}: [${written.join(", ")}]`);
    else if (values[0] && values[0] !== field.default) setValue(root, field.path.split("."), written[0] ?? "");
  }
  const [workload = "", ...others] = [...root].map(([key, node]) => writeSection(key, node));
  const axes = matrix.length > 0 ? [["matrix:", ...matrix].join("\n")] : [];
  return `${[`name: ${quoteWord(name)}`, workload, ...axes, ...others].join("\n")}\n`;
}

function setValue(node: Map<string, RecipeNode>, path: readonly string[], value: string): void {
  const [key = "", ...rest] = path;
  if (rest.length === 0) {
    node.set(key, value);
    return;
  }
  const known = node.get(key);
  const inner = known instanceof Map ? known : new Map<string, RecipeNode>();
  node.set(key, inner);
  setValue(inner, rest, value);
}

/** A section has a line for each key; what is nested deeper stands in braces. */
function writeSection(key: string, node: RecipeNode): string {
  if (typeof node === "string") return `${key}: ${node}`;
  return [`${key}:`, ...[...node].map(([name, inner]) => `  ${name}: ${writeInline(inner)}`)].join("\n");
}

function writeInline(node: RecipeNode): string {
  if (typeof node === "string") return node;
  return `{${[...node].map(([name, inner]) => `${name}: ${writeInline(inner)}`).join(", ")}}`;
}

function splitAnswers(answer: string): string[] {
  return answer
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
}

/** YAML reads a plain word as it is; anything else is quoted, so that it stays what was typed. */
function quoteWord(word: string): string {
  return /^[A-Za-z][\w.-]*$/.test(word) && !/^(true|false|null|yes|no|on|off)$/i.test(word)
    ? word
    : JSON.stringify(word);
}
