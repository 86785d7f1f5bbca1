// JSON and a place in it in, what is being written there out: under which keys, a key or a value, and its beginning.
import type { Place } from "./place";

interface Frame {
  /** The keys that lead into it; a list has those of its key. */
  path: string[];
  isList: boolean;
  key: string | null;
}

const LITERAL = /^(true|false|null|-?\d+(\.\d+)?)$/;

export function placeInJson(text: string, at: number): Place {
  const outer: Frame[] = [];
  let here: Frame = { path: [], isList: false, key: null };
  let word = "";
  let from = at;
  for (let index = 0; index < at; index++) {
    const letter = text[index] ?? "";
    if (letter === '"') {
      const end = endOf(text, index);
      from = index;
      word = text.slice(index + 1, Math.min(end, at));
      if (end >= at) break;
      index = end;
    } else if (letter === "{" || letter === "[") {
      outer.push(here);
      here = { path: here.key === null ? here.path : [...here.path, here.key], isList: letter === "[", key: null };
    } else if (letter === "}" || letter === "]") here = outer.pop() ?? here;
    else if (letter === ":") here = { ...here, key: word };
    else if (letter === ",") here = { ...here, key: null };
    else {
      if (/[\w.$-]/.test(letter) && !/[\w.$-]/.test(text[index - 1] ?? "")) from = index;
      continue;
    }
    if (letter !== '"') from = at;
  }
  const prefix = text.slice(from, at).replaceAll('"', "");
  // What stands in a list is a value of the key that the list has.
  if (here.isList) return { path: here.path.slice(0, -1), key: here.path.at(-1) ?? null, prefix, from };
  return { path: here.path, key: here.key, prefix, from };
}

/** How a word is written in JSON: as it is where it is none. */
export function inJson(word: string): string {
  return LITERAL.test(word) ? word : JSON.stringify(word);
}

/** The place of the quote that ends a string; where none does, the end of its line. */
function endOf(text: string, begin: number): number {
  for (let index = begin + 1; index < text.length; index++) {
    if (text[index] === "\\") index++;
    else if (text[index] === '"' || text[index] === "\n") return index;
  }
  return text.length;
}
