// The token of this tab: kept while the tab lives, told to nobody but the server; and whether the server wants a login.
import { useSyncExternalStore } from "react";

const KEY = "prony.token";
const listeners = new Set<() => void>();
let refused = false;

export function currentToken(): string {
  return sessionStorage.getItem(KEY) ?? "";
}

export function setToken(token: string): void {
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
  refused = false;
  tell();
}

/** The server did not take what we brought: people are asked for a token. */
export function noteRefused(): void {
  refused = true;
  tell();
}

export function useIsRefused(): boolean {
  return useSyncExternalStore(subscribe, () => refused);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(): void {
  for (const listener of listeners) listener();
}
