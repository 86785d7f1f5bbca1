// Listens to the server's stream of changes, invalidates the queries that a change makes stale, and reconnects.
import type { QueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";

import { streamEvents } from "./sse";

export type Connection = "connecting" | "live" | "lost";

/** What the server tells: which nouns changed, with the ids where it knows them. */
interface ChangeNotice {
  experiments?: string[];
  agents?: string[];
  topics?: string[];
}

// Which queries speak of a noun, by the first part of their keys.
const KEYS_BY_NOUN: Record<string, readonly string[]> = {
  experiments: ["listing", "overview", "stats", "queue", "jobs", "changes", "series", "leases", "targets", "sweep"],
  agents: ["agents", "agent", "overview", "stats", "queue", "monitoring", "leases", "targets"],
  alarms: ["alarms", "alarm", "overview"],
  schedules: ["schedules", "schedule", "fires"],
};
const GAP_MS = 1000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

let state: Connection = "connecting";
const listeners = new Set<() => void>();

export function useConnection(): Connection {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => state,
  );
}

/** Listen until the returned function is called. */
export function listenForChanges(client: QueryClient): () => void {
  const stop = new AbortController();
  const invalidate = createInvalidator(client);
  void followChanges(client, invalidate, stop.signal);
  return () => stop.abort();
}

async function followChanges(
  client: QueryClient,
  invalidate: (keys: readonly string[]) => void,
  signal: AbortSignal,
): Promise<void> {
  let lastId = "";
  let pause = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      for await (const { id, event, data } of streamEvents("/api/v1/events", signal, lastId)) {
        setConnection("live");
        pause = FIRST_PAUSE_MS;
        if (id) lastId = id;
        // Nothing is known of what was missed: everything may be stale.
        if (event === "anew") void client.invalidateQueries();
        if (event === "changed") invalidate(staleKeys(JSON.parse(data) as ChangeNotice));
      }
    } catch {
      // Cut off, or told to stop: the loop asks which.
    }
    setConnection("lost");
    await wait(pause, signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}

/** Return the first parts of the keys that a change makes stale; one experiment's own are `experiment:ID`. */
export function staleKeys(changed: ChangeNotice): string[] {
  const found = new Set<string>();
  const add = (noun: string): void => KEYS_BY_NOUN[noun]?.forEach((key) => found.add(key));
  if (changed.experiments?.length) add("experiments");
  if (changed.agents?.length) add("agents");
  changed.topics?.forEach(add);
  changed.experiments?.forEach((id) => found.add(`experiment:${id}`));
  return [...found];
}

/** Gather what became stale and ask anew at most once a second, however much happens. */
function createInvalidator(client: QueryClient): (keys: readonly string[]) => void {
  const waiting = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | null = null;
  let last = 0;
  const flush = (): void => {
    timer = null;
    last = Date.now();
    for (const key of waiting) {
      const [noun, id] = key.split(":");
      void client.invalidateQueries({ queryKey: id === undefined ? [noun] : [noun, id] });
    }
    waiting.clear();
  };
  return (keys) => {
    keys.forEach((key) => waiting.add(key));
    timer ??= setTimeout(flush, Math.max(0, GAP_MS - (Date.now() - last)));
  };
}

function setConnection(next: Connection): void {
  if (state === next) return;
  state = next;
  for (const listener of listeners) listener();
}

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
