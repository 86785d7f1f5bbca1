// The theme that the user chose in this browser: light, dark, or the system's.
import { useSyncExternalStore } from "react";

export type Theme = "auto" | "light" | "dark";

const KEY = "prony.theme";
const listeners = new Set<() => void>();

export function currentTheme(): Theme {
  const current = document.documentElement.dataset.theme;
  return current === "light" || current === "dark" ? current : "auto";
}

export function chooseTheme(theme: Theme): void {
  if (theme === "auto") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem(KEY);
  } else {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(KEY, theme);
  }
  for (const listener of listeners) listener();
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, currentTheme);
}
