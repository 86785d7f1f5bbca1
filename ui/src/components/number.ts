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
  const decimals = countSupportedDecimals(value, low, high);
  const interval = `[${formatDecimals(low, decimals)}, ${formatDecimals(high, decimals)}]`;
  return { value: formatDecimals(value, decimals), unit: scale.symbol, interval };
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
  // Each by its own digits: the ends of an interval around 0 lie near it, and are not 0.
  const [value, low, high] = [estimate.value, ...(intervalOf(estimate) ?? [])].map((one) =>
    formatShare(one).replace(" %", ""),
  );
  return { value: value ?? DASH, unit: "%", interval: high === undefined ? "" : `[${low ?? DASH}, ${high}]` };
}

/** Return what stands behind the number: the method, the count and the confidence. */
export function describeMethod(estimate: Estimate): string {
  const count = `${estimate.count} ${estimate.level}${estimate.count === 1 ? "" : "s"}`;
  if (!intervalOf(estimate)) return `${estimate.method}; ${count}; no interval can be vouched for`;
  const { confidence } = estimate;
  const kind = confidence === null || confidence === undefined ? "interval" : `${formatShare(confidence)} interval`;
  return `${estimate.method}; ${count}; ${kind}`;
}

/** Return how many decimals the half-width supports: its first digit is the last one written. */
function countSupportedDecimals(value: number, low: number, high: number): number {
  const half = (high - low) / 2;
  if (half <= 0) return countDecimals(value, 3);
  let decimals = -Math.floor(Math.log10(half));
  // A half-width that begins with 1 would lose up to half of itself to rounding: it is written with two digits.
  if (half < 2 * 10 ** -decimals) decimals += 1;
  // One digit of the value itself is kept where the interval is wider than the value, else it would read 0.
  const least = Math.min(countDecimals(value, 1), decimals + 1);
  return Math.min(Math.max(decimals, least), countDecimals(value, 4));
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
