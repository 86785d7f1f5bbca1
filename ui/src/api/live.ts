// Listens to the server's stream of changes, invalidates the queries that a change makes stale, and reconnects.
import type { QueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";

import { pauseAfter, wait } from "./backOff";
import { ApiError } from "./client";
import { streamEvents } from "./sse";

export type Connection = "connecting" | "live" | "lost";

/** The server was asked again and did not answer; `since` is when it was last heard, in milliseconds. */
export interface Outage {
  since: number;
}

/** What the server tells: which nouns changed, with the ids where it knows them. */
interface ChangeNotice {
  experiments?: string[];
  agents?: string[];
  topics?: string[];
}

// Which queries speak of a noun, by the first part of their keys.
const KEYS_BY_NOUN: Record<string, readonly string[]> = {
  experiments: [
    "listing",
    "overview",
    "stats",
    "queue",
    "jobs",
    "changes",
    "series",
    "leases",
    "targets",
    "sweep",
    "device",
  ],
  agents: ["agents", "agent", "device", "overview", "stats", "queue", "monitoring", "leases", "targets"],
  alarms: ["alarms", "alarm", "overview"],
  schedules: ["schedules", "schedule", "fires"],
};
const GAP_MS = 1000;

let state: Connection = "connecting";
let outage: Outage | null = null;
let skipPause = (): void => undefined;
const listeners = new Set<() => void>();

export function useConnection(): Connection {
  return useSyncExternalStore(subscribe, () => state);
}

export function useOutage(): Outage | null {
  return useSyncExternalStore(subscribe, () => outage);
}

/** Ask the server again at once, rather than after the pause. */
export function reconnectNow(): void {
  skipPause();
}

/** Listen until the returned function is called. */
export function listenForChanges(client: QueryClient): () => void {
  const stop = new AbortController();
  const invalidate = createInvalidator(client);
  // A laptop that wakes, or a network that is back, need not wait for the pause to end.
  window.addEventListener("online", reconnectNow, { signal: stop.signal });
  void followChanges(client, invalidate, stop.signal);
  return () => stop.abort();
}

async function followChanges(
  client: QueryClient,
  invalidate: (keys: readonly string[]) => void,
  signal: AbortSignal,
): Promise<void> {
  let lastId = "";
  let failures = 0;
  let lostAt = 0;
  while (!signal.aborted) {
    let isAway = true;
    try {
      for await (const { id, event, data } of streamEvents("/api/v1/events", signal, lastId)) {
        if (failures > 0) askFailedAgain(client);
        failures = 0;
        setConnection("live", null);
        if (id) lastId = id;
        // Nothing is known of what was missed: everything may be stale.
        if (event === "anew") void client.invalidateQueries();
        if (event === "changed") invalidate(staleKeys(JSON.parse(data) as ChangeNotice));
      }
    } catch (error) {
      // Cut off, or told to stop: the loop asks which. A server that wants a token is there.
      isAway = !(error instanceof ApiError) || error.status === 0 || error.status >= 500;
    }
    if (failures === 0) lostAt = Date.now();
    // A stream that is merely cut is opened again within a moment: only a second failure is an outage.
    setConnection("lost", isAway && failures > 0 ? { since: lostAt } : null);
    await wait(pauseAfter(failures), signal, (skip) => (skipPause = skip));
    failures += 1;
  }
}

/** What was asked for in vain while the server was away is asked for again. */
function askFailedAgain(client: QueryClient): void {
  void client.refetchQueries({ type: "active", predicate: (query) => query.state.status === "error" });
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

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function setConnection(next: Connection, nextOutage: Outage | null): void {
  if (state === next && outage?.since === nextOutage?.since) return;
  state = next;
  outage = nextOutage;
  for (const listener of listeners) listener();
}
