// Formats numbers: as many digits as the interval supports, in a unit that suits the size.
import type { Estimate } from "@/api/schema";

export interface FormattedEstimate {
  value: string;
  unit: string;
  interval: string;
}

export interface Scale {
  symbol: string;
  factor: number;
}

export const DASH = "–";
// An interval narrower than these digits of the value is written with no more of them.
const MOST_DIGITS = 6;

type ValueWithUnit = Pick<Estimate, "value" | "unit">;
/** A unit, its worth in the smallest of its family, and from how many of it on a number is written in it. */
type UnitStep = readonly [symbol: string, size: number, least: number];
type ValueWithInterval = ValueWithUnit & { low?: number | null; high?: number | null };

const KI = 1024;
// What the units of one quantity are worth in its smallest one, as people write them.
const FAMILIES: readonly (readonly (readonly [string, number])[])[] = [
  [
    ["ns", 1],
    ["µs", 1e3],
    ["ms", 1e6],
    ["s", 1e9],
  ],
  [
    ["B", 1],
    ["KiB", KI],
    ["MiB", KI ** 2],
    ["GiB", KI ** 3],
    ["TiB", KI ** 4],
  ],
  [
    ["µJ", 1],
    ["mJ", 1e3],
    ["J", 1e6],
    ["kJ", 1e9],
  ],
  [
    ["mW", 1],
    ["W", 1e3],
    ["kW", 1e6],
  ],
  // Of one core: a hundred cores are 10,000 %, and no prefix reads well before the sign.
  [["%", 1]],
  [
    ["B/s", 1],
    ["KiB/s", KI],
    ["MiB/s", KI ** 2],
    ["GiB/s", KI ** 3],
  ],
];
// Every other unit (counts, rates, money, what one gets for it) has these before it.
const PREFIXES: readonly (readonly [string, number])[] = [
  ["", 1],
  ["k", 1e3],
  ["M", 1e6],
  ["G", 1e9],
  ["T", 1e12],
];
const SYMBOLS: Record<string, string> = { us: "µs", uJ: "µJ", "1": "" };
// Below ten thousand a number reads better whole than in thousands; memory is compared in MiB until it is many GiB.
const LEAST_PREFIXED = 10;
const LEAST: Record<string, number> = { GiB: 10, TiB: 10 };
// What no prefix brings between these is written with a power of ten.
const SMALLEST = 1e-6;
const LARGEST = 1e7;
// A narrow space that breaks no line: a comma between digits would look like the one between the ends of an interval.
const GROUPS = "\u202f";

export function formatEstimateParts(
  estimate: ValueWithInterval,
  scale: Scale = chooseScale([estimate]),
): FormattedEstimate {
  if (!Number.isFinite(estimate.value)) return { value: DASH, unit: scale.symbol, interval: "" };
  const value = estimate.value * scale.factor;
  const ends = intervalOf(estimate);
  if (!ends) return { value: formatDecimals(value, countDecimals(value, 3)), unit: scale.symbol, interval: "" };
  const low = ends[0] * scale.factor;
  const high = ends[1] * scale.factor;
  // It never varied: an interval would say the same number twice more.
  if (low === high)
    return { value: formatDecimals(value, countConstantDecimals(value)), unit: scale.symbol, interval: "" };
  const decimals = countSupportedDecimals(value, low, high);
  const shown = [formatEnd(low, decimals, Math.floor), formatEnd(high, decimals, Math.ceil)];
  return { value: formatEnd(value, decimals, Math.round), unit: scale.symbol, interval: `[${shown.join(", ")}]` };
}

export function formatEstimate(estimate: ValueWithInterval, scale?: Scale): string {
  const { value, unit, interval } = formatEstimateParts(estimate, scale);
  return [value, unit, interval].filter(Boolean).join(" ");
}

/** Return both ends, or null where there is no interval that can be vouched for. */
export function intervalOf(estimate: ValueWithInterval): [number, number] | null {
  const { low, high } = estimate;
  if (low === null || low === undefined || high === null || high === undefined) return null;
  return Number.isFinite(low) && Number.isFinite(high) ? [low, high] : null;
}

/** Return the unit in which these read best side by side; all have the same unit of their own. */
export function chooseScale(estimates: readonly ValueWithUnit[]): Scale {
  const symbol = symbolOf(estimates[0]?.unit ?? "1");
  const sizes = estimates.map((one) => Math.abs(one.value)).filter((size) => size > 0 && Number.isFinite(size));
  if (sizes.length === 0) return { symbol, factor: 1 };
  // The geometric mean: 0.9 ms beside 12 ms reads better than 900 µs beside 12000 µs.
  const middle = Math.exp(sizes.map(Math.log).reduce((sum, one) => sum + one, 0) / sizes.length);
  const known = FAMILIES.find((family) => family.some(([name]) => name === symbol));
  const steps = known?.map(([name, size]): UnitStep => [name, size, LEAST[name] ?? 1]) ?? addPrefixes(symbol);
  return addPower(chooseUnit(steps, symbol, middle), middle);
}

function symbolOf(unit: string): string {
  return SYMBOLS[unit] ?? unit.replace(/^1\//, "/");
}

function addPrefixes(symbol: string): UnitStep[] {
  const isTight = symbol.startsWith("/");
  return PREFIXES.map(([prefix, size]) => [
    isTight ? prefix + symbol : `${prefix} ${symbol}`.trim(),
    size,
    prefix ? LEAST_PREFIXED : 0,
  ]);
}

function chooseUnit(steps: readonly UnitStep[], symbol: string, middle: number): Scale {
  const own = steps.find(([name]) => name === symbol)?.[1] ?? 1;
  // The tolerance is for what the logarithm rounds away: 1 ms is not 1000 µs.
  const base = middle * own * (1 + 1e-9);
  const [chosen, size] = steps.findLast(([, one, least]) => base >= one * least) ?? steps[0] ?? [symbol, own];
  return { symbol: chosen, factor: own / size };
}

function addPower({ symbol, factor }: Scale, middle: number): Scale {
  const shown = middle * factor * (1 + 1e-9);
  if (shown >= SMALLEST && shown < LARGEST) return { symbol, factor };
  const power = 3 * Math.floor(Math.log10(shown) / 3);
  return { symbol: `×10${formatSuperscript(power)} ${symbol}`.trim(), factor: factor * 10 ** -power };
}

function formatSuperscript(power: number): string {
  return String(power).replace(/./g, (digit) => (digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹".charAt(Number(digit))));
}

/** Return the mark of an axis, whose name says the unit: no more digits than it takes to tell it from the next. */
export function formatTick(value: number, scale: Scale): string {
  return groupDigits(String(Number((value * scale.factor).toPrecision(6))));
}

/** Return a number that was counted, whole: `12 345`. */
export function formatCount(count: number): string {
  return groupDigits(String(count));
}

/** Return one observed number (a sample, a counter) in a fitting unit; it has no interval by nature. */
export function formatValue(value: number, unit = "1", digits = 3): string {
  if (!Number.isFinite(value)) return DASH;
  const { symbol, factor } = chooseScale([{ value, unit }]);
  return `${formatDecimals(value * factor, countDecimals(value * factor, digits))} ${symbol}`.trim();
}

/** Return a share as a percentage: `95 %`, `1.2 %`. */
export function formatShare(value: number): string {
  const percent = value * 100;
  return `${formatDecimals(percent, Math.abs(percent) >= 10 ? 0 : countDecimals(percent, 2))} %`.replace(".0 %", " %");
}

/** Return a share in percent, as `Quantity` writes it. */
export function formatShareParts(estimate: ValueWithInterval): FormattedEstimate {
  if (!Number.isFinite(estimate.value)) return { value: DASH, unit: "%", interval: "" };
  const value = formatShare(estimate.value).replace(" %", "");
  const ends = intervalOf(estimate);
  if (!ends || ends[0] === ends[1]) return { value, unit: "%", interval: "" };
  const shown = [formatShareEnd(ends[0], Math.floor), formatShareEnd(ends[1], Math.ceil)];
  return { value, unit: "%", interval: `[${shown.join(", ")}]` };
}

/** Return an end of a share's interval in percent, rounded outwards and by its own digits: near 0 is not 0. */
function formatShareEnd(end: number, away: (steps: number) => number): string {
  const percent = end * 100;
  const decimals = Math.abs(percent) >= 10 ? 0 : countDecimals(percent, 2);
  return formatEnd(percent, decimals, away).replace(/\.0$/, "");
}

/** Return what stands behind the number: the method, the count and the confidence. */
export function describeMethod(estimate: Estimate): string {
  const count = `${estimate.count} ${estimate.level}${estimate.count === 1 ? "" : "s"}`;
  const ends = intervalOf(estimate);
  if (!ends) return `${estimate.method}; ${count}; no reliable interval`;
  const { confidence } = estimate;
  const kind = confidence === null || confidence === undefined ? "interval" : `${formatShare(confidence)} interval`;
  return `${estimate.method}; ${count}; ${kind}${ends[0] === ends[1] ? " of no width" : ""}`;
}

/** Return how many decimals are written: two significant digits of the interval's width decide. */
function countSupportedDecimals(value: number, low: number, high: number): number {
  const width = high - low;
  const decimals = countDecimals(width, 2);
  // Where an end is smaller than the width it gets one digit more, if that writes two of its own.
  const sizes = [value, low, high].filter((end) => end !== 0).map(Math.abs);
  const own = countDecimals(Math.min(...sizes), 2);
  return Math.min(Math.max(decimals, Math.min(own, decimals + 1)), countDecimals(Math.max(...sizes), MOST_DIGITS));
}

/** Return how many decimals write a constant whole, where six digits do; else those of four digits. */
function countConstantDecimals(value: number): number {
  const most = countDecimals(value, MOST_DIGITS);
  for (let decimals = countDecimals(value, 3); decimals <= most; decimals++) {
    const rounded = Math.round(value * 10 ** decimals) / 10 ** decimals;
    if (Math.abs(rounded - value) <= 1e-9 * Math.abs(value)) return decimals;
  }
  return countDecimals(value, 4);
}

/** Write a number rounded to one side, the ends of an interval outwards; one that is not 0 is never written as 0 and then has its own digits. */
function formatEnd(end: number, decimals: number, away: (steps: number) => number): string {
  const rounded = roundAway(end, decimals, away);
  if (rounded !== 0 || end === 0) return formatDecimals(rounded, decimals);
  const own = countDecimals(end, 2);
  return formatDecimals(roundAway(end, own, away), own);
}

function roundAway(end: number, decimals: number, away: (steps: number) => number): number {
  const steps = end * 10 ** decimals;
  // What the arithmetic leaves beside a whole number is that number.
  const nearest = Math.round(steps);
  const whole = Math.abs(steps - nearest) <= 1e-9 * Math.max(1, Math.abs(steps)) ? nearest : away(steps);
  return whole / 10 ** decimals;
}

function countDecimals(value: number, digits: number): number {
  return value === 0 ? 0 : digits - 1 - Math.floor(Math.log10(Math.abs(value)));
}

function formatDecimals(value: number, decimals: number): string {
  const step = 10 ** -decimals;
  const rounded = decimals < 0 ? Math.round(value / step) * step : value;
  const made = rounded.toFixed(Math.min(Math.max(decimals, 0), 12));
  return groupDigits(Number(made) === 0 ? made.replace("-", "") : made);
}

/** Digits stand in threes from five on: four are read at a glance. */
function groupDigits(digits: string): string {
  const whole = /^-?\d{5,}(?=\.|$)/.exec(digits)?.[0];
  return whole === undefined ? digits : whole.replace(/\B(?=(\d{3})+$)/g, GROUPS) + digits.slice(whole.length);
}
