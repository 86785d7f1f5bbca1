// The token of this browser tab, and whether the server requires a login.
import { useSyncExternalStore } from "react";

const KEY = "prony.token";
const listeners = new Set<() => void>();
let loginRequired = false;

export function currentToken(): string {
  return sessionStorage.getItem(KEY) ?? "";
}

export function setToken(token: string): void {
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
  loginRequired = false;
  notifyListeners();
}

/** The server did not take what we brought: people are asked for a token. */
export function requireLogin(): void {
  loginRequired = true;
  notifyListeners();
}

export function useLoginRequired(): boolean {
  return useSyncExternalStore(subscribe, () => loginRequired);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function notifyListeners(): void {
  for (const listener of listeners) listener();
}
