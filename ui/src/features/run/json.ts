// Finds what is being written at the cursor of a JSON text: the path, a key or a value, and its prefix.
import type { CursorContext } from "./yaml";

interface Frame {
  /** The keys that lead into it; a list has those of its key. */
  path: string[];
  isList: boolean;
  key: string | null;
}

// A string, whole or as far as it is written; a mark; or any other word.
const TOKEN = /"(?:\\.|[^"\\\n])*"?|[{}[\]:,]|[^\s{}[\]:,"]+/g;
const LITERAL = /^(true|false|null|-?\d+(\.\d+)?)$/;

export function locateInJson(text: string, at: number): CursorContext {
  const outer: Frame[] = [];
  let here: Frame = { path: [], isList: false, key: null };
  let word = "";
  let from = at;
  for (const { 0: token, index } of text.slice(0, at).matchAll(TOKEN)) {
    from = isOpen(token) && index + token.length === at ? index : at;
    here = applyToken(here, token, word, outer);
    word = token.replaceAll('"', "");
  }
  const prefix = text.slice(from, at).replace('"', "");
  // What stands in a list is a value of the key that the list has.
  if (here.isList) return { path: here.path.slice(0, -1), key: here.path.at(-1) ?? null, prefix, from };
  return { path: here.path, key: here.key, prefix, from };
}

function applyToken(here: Frame, token: string, word: string, outer: Frame[]): Frame {
  switch (token) {
    case "{":
    case "[":
      outer.push(here);
      return { path: here.key === null ? here.path : [...here.path, here.key], isList: token === "[", key: null };
    case "}":
    case "]":
      return outer.pop() ?? here;
    case ":":
      return { ...here, key: word };
    case ",":
      return { ...here, key: null };
    default:
      return here;
  }
}

/** Is this a word that goes on, rather than a mark or a string that has ended? */
function isOpen(token: string): boolean {
  return !/^([{}[\]:,]|".*")$/.test(token);
}

/** How a word is written in JSON: as it is where it is none. */
export function quoteForJson(word: string): string {
  return LITERAL.test(word) ? word : JSON.stringify(word);
}
