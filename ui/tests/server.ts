// A fake server for tests: it replaces `fetch`, and everything above is real.
import { afterEach, beforeEach, vi } from "vitest";

import type { paths, Problem } from "../src/api/schema";

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
type Path = keyof paths;
type Json<R> = R extends { content: { "application/json": infer B } } ? B : undefined;
type Good<O> = O extends { responses: infer R } ? Json<R[Extract<keyof R, 200 | 201 | 202 | 204>]> : never;
/** What this operation answers with, by the server's own document. */
export type Answer<M extends Method, P extends Path> = Good<NonNullable<paths[P][Lowercase<M>]>>;

export interface ReceivedRequest {
  method: string;
  path: string;
  query: Record<string, string>;
  headers: Headers;
  body: unknown;
}

type Reply = (asked: ReceivedRequest, signal: AbortSignal) => Response;

interface Route {
  method: string;
  path: RegExp;
  reply: Reply;
}

/** A stream of events that a test writes, and cuts. */
export class FakeStream {
  readonly #encoder = new TextEncoder();
  #control: ReadableStreamDefaultController<Uint8Array> | null = null;
  /** What each of those who came asked for last: an id to go on from, or nothing. */
  readonly since: string[] = [];

  open(asked: ReceivedRequest, signal: AbortSignal): Response {
    this.since.push(asked.headers.get("Last-Event-ID") ?? "");
    const body = new ReadableStream<Uint8Array>({
      start: (control) => {
        this.#control = control;
        signal.addEventListener("abort", () => this.cut());
      },
    });
    return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  }

  send(event: string, data: unknown, id = ""): void {
    this.#control?.enqueue(
      this.#encoder.encode(`${id ? `id: ${id}\n` : ""}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
    );
  }

  cut(): void {
    const control = this.#control;
    this.#control = null;
    control?.error(new TypeError("the connection is lost"));
  }
}

export class FakeServer {
  readonly requests: ReceivedRequest[] = [];
  #routes: Route[] = [];
  isDown = false;

  answer<M extends Method, P extends Path>(
    method: M,
    path: P,
    answer: Answer<M, P> | ((asked: ReceivedRequest) => Answer<M, P>),
  ): this {
    const resolveAnswer = (asked: ReceivedRequest): unknown =>
      typeof answer === "function" ? (answer as (asked: ReceivedRequest) => unknown)(asked) : answer;
    return this.#add(method, path, (asked) => buildResponse(resolveAnswer(asked)));
  }

  refuse(method: Method, path: Path, problem: Partial<Problem> & { status: number }): this {
    const whole: Problem = {
      type: "about:blank",
      title: "",
      code: "refused",
      detail: "",
      hint: "",
      field: "",
      problems: [],
      ...problem,
    };
    return this.#add(
      method,
      path,
      () =>
        new Response(JSON.stringify(whole), {
          status: problem.status,
          headers: { "Content-Type": "application/problem+json" },
        }),
    );
  }

  openStream(path: Path): FakeStream {
    const stream = new FakeStream();
    this.#add("GET", path, (asked, signal) => stream.open(asked, signal));
    return stream;
  }

  answerLogOut(): this {
    return this.#add("POST", "/logout", () => buildResponse(undefined));
  }

  /** How often, and with what, an operation was asked. */
  requestsTo(method: Method, path: Path): ReceivedRequest[] {
    const pattern = patternOf(path);
    return this.requests.filter((one) => one.method === method && pattern.test(one.path));
  }

  readonly fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    const url = new URL(request.url);
    const text = await request.text();
    const asked: ReceivedRequest = {
      method: request.method,
      path: decodeURIComponent(url.pathname),
      query: Object.fromEntries(url.searchParams),
      headers: request.headers,
      body: text === "" || isBytes(request) ? undefined : JSON.parse(text),
    };
    this.requests.push(asked);
    if (this.isDown) throw new TypeError("the connection was refused");
    const route = this.#routes.find((one) => one.method === asked.method && one.path.test(asked.path));
    // Whoever writes a test forgot an answer: let the page say which.
    if (!route)
      return buildResponse(
        { code: "unanswered", detail: `the test answers nothing to ${asked.method} ${asked.path}`, hint: "" },
        501,
      );
    return route.reply(asked, request.signal);
  };

  /** The newest answer counts. */
  #add(method: string, path: string, reply: Reply): this {
    this.#routes = [{ method, path: patternOf(path), reply }, ...this.#routes];
    return this;
  }
}

/** Is the body a file? What is in it is not kept. */
function isBytes(request: Request): boolean {
  return request.headers.get("Content-Type") === "application/x-tar";
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(/\{\w+\}/g, "[^/]+")}$`);
}

function buildResponse(body: unknown, status = 200): Response {
  if (body === undefined) return new Response(null, { status: 204 });
  return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });
}

/** For a file of tests: a fresh server before each. */
export function fakeServer(): { current: FakeServer } {
  const held = { current: new FakeServer() };
  beforeEach(() => {
    held.current = new FakeServer();
    vi.stubGlobal("fetch", held.current.fetch);
  });
  // What a page that is gone still asks reaches nobody; above all no real server.
  afterEach(() => {
    held.current.isDown = true;
  });
  return held;
}
