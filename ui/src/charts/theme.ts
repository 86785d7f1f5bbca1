// The colours that charts are drawn with, read from the page's CSS and read again when the theme changes.
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
let cachedTheme: ChartTheme | null = null;
let isWatched = false;

export function useChartTheme(): ChartTheme {
  return useSyncExternalStore(subscribe, currentChartTheme);
}

function currentChartTheme(): ChartTheme {
  cachedTheme ??= readChartTheme();
  return cachedTheme;
}

function readChartTheme(): ChartTheme {
  // A custom property is text; only as the colour of an element is `light-dark()` decided.
  const probe = document.createElement("span");
  document.body.append(probe);
  const readColour = (name: string): string => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const found = {
    text: readColour("text"),
    muted: readColour("muted"),
    grid: readColour("line"),
    surface: readColour("surface"),
    series: Array.from({ length: SERIES }, (_, index) => readColour(`series-${index + 1}`)),
    good: readColour("good"),
    bad: readColour("bad"),
    warn: readColour("warn"),
    accent: readColour("accent"),
    font: getComputedStyle(document.body).fontFamily,
  };
  probe.remove();
  return found;
}

function subscribe(listener: () => void): () => void {
  watchTheme();
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function watchTheme(): void {
  if (isWatched) return;
  isWatched = true;
  const refresh = (): void => {
    cachedTheme = null;
    for (const listener of listeners) listener();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
  new MutationObserver(refresh).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}
