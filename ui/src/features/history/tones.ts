// The badge colours of series and changes, and the text of a change's size.
import type { Change, SeriesState } from "@/api/schema";
import type { Tone } from "@/components/Badge";

const SERIES: Record<SeriesState, Tone> = {
  regression: "bad",
  suspect: "warn",
  drift: "warn",
  environment: "info",
  improvement: "good",
  steady: "good",
  learning: "quiet",
};
const KINDS: Record<Change["kind"], Tone> = {
  regression: "bad",
  improvement: "good",
  drift: "warn",
  environment: "info",
};

export function seriesTone(state: SeriesState): Tone {
  return SERIES[state];
}

export function changeTone(change: Pick<Change, "kind" | "state">): Tone {
  if (change.state === "suspect") return "warn";
  if (change.state === "rejected" || change.state === "acknowledged" || change.state === "resolved") return "quiet";
  return KINDS[change.kind];
}

/** A relative effect as people write it, with its interval where there is one, whose ends are rounded outwards. */
export function formatChangeSize(effect: number, low?: number | null, high?: number | null): string {
  const interval =
    low == null || high == null
      ? ""
      : ` [${formatSigned(roundAway(low, Math.floor))}, ${formatSigned(roundAway(high, Math.ceil))}]`;
  return formatSigned(effect) + interval;
}

function formatSigned(share: number): string {
  return `${share < 0 ? "−" : "+"}${(Math.abs(share) * 100).toFixed(1)} %`;
}

function roundAway(share: number, away: (steps: number) => number): number {
  // The inner rounding takes away what a float adds: 0.066 * 1000 is 66.00000000000001.
  return away(Number((share * 1000).toFixed(6))) / 1000;
}
