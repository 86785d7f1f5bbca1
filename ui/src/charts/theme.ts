// The tokens of the page in, the colours that a chart is drawn with out; anew whenever the theme changes.
import { useSyncExternalStore } from "react";

export interface ChartTheme {
  text: string;
  muted: string;
  grid: string;
  surface: string;
  series: readonly string[];
  good: string;
  bad: string;
  warn: string;
  accent: string;
  font: string;
}

const SERIES = 8;
const listeners = new Set<() => void>();
let known: ChartTheme | null = null;
let isWatched = false;

export function useChartTheme(): ChartTheme {
  return useSyncExternalStore(subscribe, current);
}

function current(): ChartTheme {
  known ??= read();
  return known;
}

function read(): ChartTheme {
  // A custom property is text; only as the colour of an element is `light-dark()` decided.
  const probe = document.createElement("span");
  document.body.append(probe);
  const colour = (name: string): string => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const found = {
    text: colour("text"),
    muted: colour("muted"),
    grid: colour("line"),
    surface: colour("surface"),
    series: Array.from({ length: SERIES }, (_, index) => colour(`series-${index + 1}`)),
    good: colour("good"),
    bad: colour("bad"),
    warn: colour("warn"),
    accent: colour("accent"),
    font: getComputedStyle(document.body).fontFamily,
  };
  probe.remove();
  return found;
}

function subscribe(listener: () => void): () => void {
  watch();
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function watch(): void {
  if (isWatched) return;
  isWatched = true;
  const anew = (): void => {
    known = null;
    for (const listener of listeners) listener();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", anew);
  new MutationObserver(anew).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}
