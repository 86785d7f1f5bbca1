// Formats instants and durations in the reader's time zone, with the exact time in the tooltip.
import { useSyncExternalStore } from "react";

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];
const NEAR = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const LOCALE = "en-GB";
const DAY = { day: "numeric", month: "short", year: "numeric" } as const;
const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" } as const;
const TICK_MS = 5000;
// Making a format costs more than using it: one for each zone, the reader's own by an empty name.
const formats = new Map<string, Intl.DateTimeFormat>();

let now = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | null = null;

function subscribe(listener: () => void): () => void {
  if (listeners.size === 0) now = Date.now();
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const one of listeners) one();
  }, TICK_MS);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0 && timer !== null) {
      clearInterval(timer);
      timer = null;
    }
  };
}

export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** `15 Nov 2026, 03:00:00 CET`: in the reader's zone, or in the one that is named. */
export function formatInstant(instant: string, zone = ""): string {
  let format = formats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat(LOCALE, { ...DAY, ...CLOCK, ...(zone ? { timeZone: zone } : {}) });
    formats.set(zone, format);
  }
  return format.format(new Date(instant));
}

const DAY_FORMAT = new Intl.DateTimeFormat(LOCALE, DAY);
const CLOCK_FORMAT = new Intl.DateTimeFormat(LOCALE, CLOCK);

/** `15 Nov 2026`, of the reader's calendar. */
export function formatDay(instant: string): string {
  return DAY_FORMAT.format(new Date(instant));
}

/** `03:00:00 CET`, of milliseconds since the epoch. */
export function formatClock(at: number): string {
  return CLOCK_FORMAT.format(new Date(at));
}

export function formatAgo(instant: string, at: number): string {
  const seconds = (new Date(instant).getTime() - at) / 1000;
  // What was made after the clock here last ticked is not in the future.
  if (Math.abs(seconds) < 8) return "just now";
  const [unit, size] = UNITS.find(([, least]) => Math.abs(seconds) >= least) ?? ["second", 1];
  return NEAR.format(Math.round(seconds / size), unit);
}

/** `4 min 10 s`: at most two units. */
export function formatDuration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return "–";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const parts: [number, string][] = [
    [Math.floor(whole / 86_400), "d"],
    [Math.floor((whole % 86_400) / 3600), "h"],
    [Math.floor((whole % 3600) / 60), "min"],
    [whole % 60, "s"],
  ];
  const first = parts.findIndex(([size]) => size > 0);
  return parts
    .slice(first, first + 2)
    .filter(([size]) => size > 0)
    .map(([size, unit]) => `${size} ${unit}`)
    .join(" ");
}

export function RelativeTime({ at }: { at: string | null | undefined }) {
  const current = useNow();
  if (!at) return <span className="muted">–</span>;
  return (
    <time dateTime={at} title={formatInstant(at)}>
      {formatAgo(at, current)}
    </time>
  );
}

export function Duration({ from, to }: { from: string; to?: string | null | undefined }) {
  const current = useNow();
  const end = to ? new Date(to).getTime() : Math.max(current, new Date(from).getTime());
  return <>{formatDuration((end - new Date(from).getTime()) / 1000)}</>;
}
