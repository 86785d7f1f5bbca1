// A strip that shows an effect's interval around the line of no change and the band of negligible changes.
import type { Effect } from "@/api/schema";
import type { Tone } from "@/components/Badge";

import { bandHalfWidth, placeEffect } from "./strip";

export function EffectStrip(props: { effect: Effect; within: number; threshold: number; tone: Tone; label: string }) {
  const { effect, within, threshold, tone, label } = props;
  const { at, low, high } = placeEffect(effect, within);
  const half = bandHalfWidth(threshold, within);
  return (
    <svg className={`effect ink-${tone}`} viewBox="0 0 100 16" preserveAspectRatio="none" role="img" aria-label={label}>
      <rect className="effect-band" x={50 - half} y={0} width={2 * half} height={16} />
      <line className="effect-zero" x1={50} x2={50} y1={0} y2={16} />
      <rect x={low} y={5} width={Math.max(high - low, 0.6)} height={6} fill="currentColor" opacity={0.4} />
      <rect x={at - 0.6} y={2} width={1.2} height={12} fill="currentColor" />
    </svg>
  );
}
