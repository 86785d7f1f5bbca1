// Formats an effect: `+5.1 %` with its interval, or points for a difference of shares.
import type { Contrast, Effect } from "@/api/schema";

export interface FormattedEffect {
  change: string;
  interval: string;
  chance: string;
}

export function formatEffect(effect: Effect): FormattedEffect {
  const formatSize = (value: number) =>
    effect.scale === "difference" ? `${addSign((value * 100).toFixed(2))} points` : formatPercent(value - 1);
  const { low = null, high = null, p = null } = effect;
  return {
    change: formatSize(effect.value),
    interval: low === null || high === null || low === high ? "" : `[${formatSize(low)}, ${formatSize(high)}]`,
    chance: p === null ? "" : formatChance(p),
  };
}

/** Say what a change is, where it is not simply the quotient of the two numbers beside it. */
export function explainChange(contrasts: readonly Contrast[]): string | undefined {
  const method = contrasts.map((one) => one.effect?.method ?? "").find((one) => one.includes("Hodges-Lehmann"));
  if (method === undefined) return undefined;
  const from = method.startsWith("paired")
    ? "from the quotients inside the pairs of runs"
    : "the median of the quotients of every candidate run by every baseline run";
  return `Change: ${from} (Hodges-Lehmann). It can differ a little from the quotient of the two medians beside it.`;
}

// What a comparison decides by: one test alone, and all at once.
const DECISIVE = [0.01, 0.025];
const MOST_PERCENT_DIGITS = 4;

/** A probability with two digits; one just below a level that decides is rounded down and not written as that level. */
export function formatChance(p: number): string {
  if (p < 0.0001) return "< 0.0001";
  const rounded = Number(p.toPrecision(2));
  if (!DECISIVE.some((level) => p < level && level <= rounded)) return String(rounded);
  const step = 10 ** (Math.floor(Math.log10(p)) - 1);
  return String(Number((Math.floor(p / step) * step).toPrecision(2)));
}

/** A digit more where it is small, and none where it is large; what lies below a whole percent is not written as that, nor as 0. */
export function formatPercent(share: number): string {
  const value = share * 100;
  const size = Math.abs(value);
  let digits = size >= 99.95 ? 0 : size >= 0.995 || size === 0 ? 1 : 2;
  while (digits > 0 && digits < MOST_PERCENT_DIGITS && size < 10 && isWholeByRounding(value, digits)) digits++;
  const text = value.toFixed(digits);
  return `${addSign(Number(text) === 0 ? "0.0" : text)} %`;
}

function isWholeByRounding(value: number, digits: number): boolean {
  const rounded = Number(value.toFixed(digits));
  const isRaised = Math.abs(rounded) - Math.abs(value) > 1e-9 || (rounded === 0 && value !== 0);
  return isRaised && Number.isInteger(rounded);
}

function addSign(text: string): string {
  return text.startsWith("-") ? `−${text.slice(1)}` : `+${text}`;
}
