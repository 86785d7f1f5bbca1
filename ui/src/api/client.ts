// A typed request in, what the server answered out; or its refusal, thrown as a `Refusal` that people can read.
import createClient from "openapi-fetch";

import type { paths, Problem } from "./schema";
import { currentToken, noteRefused, setToken } from "./token";

export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  readonly problem: Problem | null;

  constructor(status: number, problem: Problem | null) {
    super(problem?.detail ?? (status === 0 ? "the server cannot be reached" : `the server answered ${status}`));
    this.status = status;
    this.code = problem?.code ?? (status === 0 ? "unreachable" : "unknown");
    this.hint = problem?.hint ?? (status === 0 ? "is it running? this page tries again by itself" : "");
    this.problem = problem;
  }
}

export function authorised(headers: Headers): Headers {
  const token = currentToken();
  if (token) headers.set("Authorization", `Bearer ${token}`);
  return headers;
}

/** Fetch anything of this server's with the token; a refusal is thrown. */
export async function asked(input: Request): Promise<Response> {
  authorised(input.headers);
  let response: Response;
  try {
    response = await fetch(input);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refusal(0, null);
  }
  if (response.ok || response.status === 304) return response;
  if (response.status === 401) noteRefused();
  throw new Refusal(response.status, await problemOf(response));
}

async function problemOf(response: Response): Promise<Problem | null> {
  if (!(response.headers.get("Content-Type") ?? "").includes("json")) return null;
  try {
    return (await response.json()) as Problem;
  } catch {
    return null;
  }
}


export const api = createClient<paths>({ baseUrl: location.origin, fetch: asked });

/** Return the body of an answer that is known to be good: `await got(api.GET(...))`. */
export async function got<T>(answer: Promise<{ data?: T; response: Response }>): Promise<T> {
  const { data, response } = await answer;
  if (data === undefined && response.status !== 204) throw new Refusal(response.status, null);
  return data as T;
}

/** End this browser's session and forget the tab's token. */
export async function logOut(): Promise<void> {
  await asked(new Request(new URL("/logout", location.origin), { method: "POST" }));
  setToken("");
}

/** Save an answer as a file: a link cannot carry a token. */
export async function download(path: string, name: string): Promise<void> {
  const response = await asked(new Request(new URL(path, location.origin)));
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
