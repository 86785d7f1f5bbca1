// Places effects on a common scale: no change in the middle, with the band of negligible changes around it.
import type { Effect } from "@/api/schema";

export interface Strip {
  /** All in percent of the width. */
  at: number;
  low: number;
  high: number;
  isCut: boolean;
}

/** How far from the middle the ends of the scale lie, in logarithms; the same for all of one table. */
export function chooseReach(effects: readonly Effect[], threshold: number): number {
  const farthest = effects.flatMap((one) => [one.value, one.low, one.high].map((value) => distance(one, value)));
  const least = 2.5 * Math.log(1 + threshold);
  // One wild metric would press all others into the middle: beyond this it is cut, and drawn as cut.
  return Math.min(Math.max(least, ...farthest.map(Math.abs)) * 1.08, Math.log(3));
}

export function placeEffect(effect: Effect, within: number): Strip {
  const place = (value: number | null | undefined) => 50 + (50 * distance(effect, value ?? effect.value)) / within;
  const [low, at, high] = [place(effect.low), place(effect.value), place(effect.high)];
  return { at: clampPercent(at), low: clampPercent(low), high: clampPercent(high), isCut: low < 0 || high > 100 };
}

/** Return half the width of the band, in percent of the width. */
export function bandHalfWidth(threshold: number, within: number): number {
  return (50 * Math.log(1 + threshold)) / within;
}

function distance(effect: Effect, value: number | null | undefined): number {
  if (value === null || value === undefined) return 0;
  if (effect.scale === "difference") return value;
  return value > 0 ? Math.log(value) : 0;
}

function clampPercent(place: number): number {
  return Math.min(100, Math.max(0, Math.round(place * 10) / 10));
}

/** Read `3%` or `0.03`, as terms tell it. */
export function parseShare(text: string | number): number {
  const said = String(text).trim();
  const value = said.endsWith("%") ? Number(said.slice(0, -1)) / 100 : Number(said);
  return Number.isFinite(value) ? value : 0.03;
}
