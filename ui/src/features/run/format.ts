// Detects whether a recipe's text is YAML, TOML or JSON.
export type Format = "yaml" | "toml" | "json";

export const FORMATS: readonly Format[] = ["yaml", "toml", "json"];

export function detectFormat(text: string): Format {
  if (/^\s*\{/.test(text)) return "json";
  const lines = text.split("\n").filter((line) => !/^\s*(#|$)/.test(line));
  const toml = lines.filter((line) => /^\s*(\[\[?[\w."-]+\]\]?\s*(#.*)?$|[\w."-]+\s*=)/.test(line)).length;
  const yaml = lines.filter((line) => /^\s*(- )?[\w."-]+\s*:(\s|$)/.test(line)).length;
  return toml > yaml ? "toml" : "yaml";
}
