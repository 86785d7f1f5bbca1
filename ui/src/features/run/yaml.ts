// Finds what is being written at the cursor of a YAML text: the path, a key or a value, and its prefix.
export interface CursorContext {
  /** The keys that lead there, from the outermost on. */
  path: string[];
  /** Of a value: the key that it is of. */
  key: string | null;
  prefix: string;
  /** Where the word that is being written begins. */
  from: number;
}

const KEY = /^(\s*(?:- +)*)("?[\w.$-]+"?)\s*:(?:\s|$)/;

export function locateInYaml(text: string, at: number): CursorContext {
  const start = text.lastIndexOf("\n", at - 1) + 1;
  const line = text.slice(start, at);
  const own = KEY.exec(line);
  const indent = own ? measureIndent(own[1] ?? "") : measureIndent(/^\s*(?:- +)*/.exec(line)?.[0] ?? "");
  const path = findParents(text.slice(0, start), indent);
  const begin = own ? own[0].length : (/^\s*(?:- +)*/.exec(line)?.[0].length ?? 0);
  const key = own ? stripQuotes(own[2] ?? "") : null;
  return locateInLine(line.slice(begin), path, key, start + begin);
}

/** Go through the rest of the line, where `{kind: hashing, ...}` may nest keys. */
function locateInLine(rest: string, path: string[], key: string | null, from: number): CursorContext {
  const outer: { path: string[]; key: string | null }[] = [];
  let here = { path, key };
  let word = 0;
  for (let index = 0; index < rest.length; index++) {
    const letter = rest[index];
    if (letter === "{") {
      outer.push(here);
      here = { path: here.key === null ? here.path : [...here.path, here.key], key: null };
    } else if (letter === "}") here = outer.pop() ?? here;
    else if (letter === "," && outer.length > 0) here = { path: here.path, key: null };
    else if (letter === ":" && outer.length > 0 && here.key === null)
      here = { path: here.path, key: stripQuotes(rest.slice(word, index)) };
    else continue;
    word = index + 1;
  }
  const raw = rest.slice(word);
  const prefix = raw.trimStart();
  return { ...here, prefix, from: from + word + (raw.length - prefix.length) };
}

function findParents(above: string, indent: number): string[] {
  const found: string[] = [];
  let inner = indent;
  for (const line of above.split("\n").reverse()) {
    const known = KEY.exec(line);
    if (!known || /^\s*#/.test(line)) continue;
    const mine = measureIndent(known[1] ?? "");
    if (mine >= inner) continue;
    found.unshift(stripQuotes(known[2] ?? ""));
    inner = mine;
    if (inner === 0) break;
  }
  return found;
}

/** The key under a place, with the keys that lead to it; null where there is none. */
export function findKey(
  text: string,
  at: number,
  locate = locateInYaml,
): { path: string[]; from: number; to: number } | null {
  let from = at;
  let to = at;
  while (from > 0 && /[\w.$-]/.test(text[from - 1] ?? "")) from--;
  while (to < text.length && /[\w.$-]/.test(text[to] ?? "")) to++;
  if (from === to || !/^"?\s*:(\s|$)/.test(text.slice(to, to + 3))) return null;
  return { path: [...locate(text, from).path, text.slice(from, to)], from, to };
}

function measureIndent(head: string): number {
  return head.length;
}

function stripQuotes(word: string): string {
  return word.trim().replaceAll('"', "");
}
