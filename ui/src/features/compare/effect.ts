// Formats an effect: `+5.1 %` with its interval, or points for a difference of shares.
import type { Effect } from "@/api/schema";

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
    interval: low === null || high === null ? "" : `[${formatSize(low)}, ${formatSize(high)}]`,
    chance: p === null ? "" : p < 0.0001 ? "< 0.0001" : String(Number(p.toPrecision(2))),
  };
}

/** A digit more where it is small, and none where it is large. */
export function formatPercent(share: number): string {
  const value = share * 100;
  const size = Math.abs(value);
  return `${addSign(value.toFixed(size >= 99.95 ? 0 : size >= 0.995 || size === 0 ? 1 : 2))} %`;
}

function addSign(text: string): string {
  return text.startsWith("-") ? `−${text.slice(1)}` : `+${text}`;
}
