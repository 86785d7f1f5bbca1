// An effect in, how people write it out: `+5.1 %` with its interval, or points where it is a difference of shares.
import type { Effect } from "@/api/schema";

export interface WrittenEffect {
  change: string;
  interval: string;
  chance: string;
}

export function writtenEffect(effect: Effect): WrittenEffect {
  const write = (value: number) =>
    effect.scale === "difference" ? `${signed((value * 100).toFixed(2))} points` : percent(value - 1);
  const { low = null, high = null, p = null } = effect;
  return {
    change: write(effect.value),
    interval: low === null || high === null ? "" : `[${write(low)}, ${write(high)}]`,
    chance: p === null ? "" : p < 0.0001 ? "< 0.0001" : String(Number(p.toPrecision(2))),
  };
}

/** A digit more where it is small, and none where it is large. */
export function percent(share: number): string {
  const value = share * 100;
  const size = Math.abs(value);
  return `${signed(value.toFixed(size >= 99.95 ? 0 : size >= 0.995 || size === 0 ? 1 : 2))} %`;
}

function signed(text: string): string {
  return text.startsWith("-") ? `−${text.slice(1)}` : `+${text}`;
}
