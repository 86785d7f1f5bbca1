// Parses the search parameters of a URL into text, choices and flags.
//
// A page's parser returns every key that it knows, undefined where it is not given: the router lays the parsed keys over
// the ones of the address, so a key that was left out would keep a value that no page understands. The address itself
// holds only what is defined.

export type Search = Record<string, unknown>;

/** Return a text; the router reads `?of=123` as a number, and it is a name here. */
export function parseText(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Return one of the words that are known, or nothing: what is not known is not an error, the page has a default. */
export function parseChoice<const W extends string>(value: unknown, words: readonly W[]): W | undefined {
  return words.find((known) => known === value);
}

export function parseFlag(value: unknown): true | undefined {
  return value === true || value === "true" || value === 1 ? true : undefined;
}

/** Names with commas between them, as the API takes them. */
export function splitNames(text: string | undefined): string[] {
  return [
    ...new Set(
      (text ?? "")
        .split(",")
        .map((name) => name.trim())
        .filter(Boolean),
    ),
  ];
}
