// Marks in the editor for the problems that the server reports, with a fix where the hint names one.
import type { RecipeProblem } from "@/api/schema";

export interface Mark {
  from: number;
  to: number;
  message: string;
  /** The word that was most likely meant in the place of what is marked. */
  fix: string | null;
}

export function markProblems(text: string, problems: readonly RecipeProblem[]): Mark[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return problems.map((problem) => {
    const line = Math.min(Math.max((problem.line ?? 1) - 1, 0), starts.length - 1);
    const begin = starts[line] ?? 0;
    const end = (starts[line + 1] ?? text.length + 1) - 1;
    const place = problem.line == null ? 0 : Math.min(begin + Math.max((problem.column ?? 1) - 1, 0), end);
    // Of a word in quotes the word is marked and corrected, and the quotes stay.
    const from = /^["'][\w.$-]/.test(text.slice(place, end)) ? place + 1 : place;
    const word = /^[\w.$-]+/.exec(text.slice(from, end))?.[0] ?? "";
    const to = Math.max(word ? from + word.length : end, Math.min(from + 1, text.length));
    return { from, to, message: describeProblem(problem), fix: findFix(problem, word) };
  });
}

export function describeProblem(problem: RecipeProblem): string {
  const said = [problem.path, problem.message].filter(Boolean).join(": ");
  return problem.hint ? `${said} (${problem.hint})` : said;
}

/** `did you mean workload.engine?` at `engin` means `engine`: the place has the keys before it already. */
function findFix(problem: RecipeProblem, word: string): string | null {
  const meant = /did you mean ([\w.$:-]+)\?/.exec(problem.hint)?.[1];
  if (meant === undefined || word === "") return null;
  const parent = problem.path.slice(0, problem.path.length - (problem.path.split(".").at(-1)?.length ?? 0));
  return meant.startsWith(parent) ? meant.slice(parent.length) : meant;
}
