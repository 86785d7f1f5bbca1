// The token of this browser tab, and whether the server requires a login.
import { useSyncExternalStore } from "react";

const KEY = "prony.token";
const listeners = new Set<() => void>();
let loginRequired = false;
let refusal = "";

export function currentToken(): string {
  return sessionStorage.getItem(KEY) ?? "";
}

export function setToken(token: string): void {
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
  loginRequired = false;
  refusal = "";
  notifyListeners();
}

/** The server refused the token that this tab sent: it is forgotten, and people are told why. */
export function refuseToken(token: string, reason: string): void {
  if (token === currentToken()) sessionStorage.removeItem(KEY);
  refusal = reason;
  requireLogin();
}

/** The server did not take what we brought: people are asked for a token. */
export function requireLogin(): void {
  loginRequired = true;
  notifyListeners();
}

/** Why the last token was refused; empty where none was sent. */
export function useRefusal(): string {
  return useSyncExternalStore(subscribe, () => refusal);
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
