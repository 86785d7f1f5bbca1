// The typed HTTP client of the server; it throws an `ApiError` with a readable message when a request fails.
import createClient from "openapi-fetch";

import type { paths, Problem } from "./schema";
import { currentToken, refuseToken, requireLogin, setToken } from "./token";

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  readonly problem: Problem | null;

  constructor(status: number, problem: Problem | null) {
    super(problem?.detail ?? (status === 0 ? "the server cannot be reached" : `the server answered ${status}`));
    this.status = status;
    this.code = problem?.code ?? (status === 0 ? "unreachable" : "unknown");
    this.hint = problem?.hint ?? (status === 0 ? "is it running? this page keeps trying" : "");
    this.problem = problem;
  }
}

export function addAuthorisation(headers: Headers): Headers {
  const token = currentToken();
  if (token) headers.set("Authorization", `Bearer ${token}`);
  return headers;
}

/** Fetch anything of this server's with the token; a refusal is thrown. */
export async function sendRequest(input: Request): Promise<Response> {
  const token = currentToken();
  addAuthorisation(input.headers);
  let response: Response;
  try {
    response = await fetch(input);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, null);
  }
  if (response.ok || response.status === 304) return response;
  const error = new ApiError(response.status, await readProblem(response));
  if (response.status === 401 && token) refuseToken(token, error.message);
  else if (response.status === 401) requireLogin();
  throw error;
}

async function readProblem(response: Response): Promise<Problem | null> {
  if (!(response.headers.get("Content-Type") ?? "").includes("json")) return null;
  try {
    return (await response.json()) as Problem;
  } catch {
    return null;
  }
}

export const api = createClient<paths>({ baseUrl: location.origin, fetch: sendRequest });

/** Return the body of an answer that is known to be good: `await readBody(api.GET(...))`. */
export async function readBody<T>(answer: Promise<{ data?: T; response: Response }>): Promise<T> {
  const { data, response } = await answer;
  if (data === undefined && response.status !== 204) throw new ApiError(response.status, null);
  return data as T;
}

const ANSWER_MS = 5000;

/** Does the server answer? One that is not well does; a proxy's page in its place is no answer of its. */
export async function isServerThere(): Promise<boolean> {
  try {
    const response = await fetch("/api/v1/health", { signal: AbortSignal.timeout(ANSWER_MS), cache: "no-store" });
    return (response.headers.get("Content-Type") ?? "").includes("json");
  } catch {
    return false;
  }
}

/** End this browser's session and forget the tab's token. */
export async function logOut(): Promise<void> {
  await sendRequest(new Request(new URL("/logout", location.origin), { method: "POST" }));
  setToken("");
}

/** Save an answer as a file: a link cannot carry a token. */
export async function downloadFile(path: string, name: string): Promise<void> {
  const response = await sendRequest(new Request(new URL(path, location.origin)));
  saveBlob(await response.blob(), name);
}

/** Save something that the browser has as a file. */
export function saveBlob(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
