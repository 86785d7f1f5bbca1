// A line chart as tall as a word, in plain SVG so that lists do not load the chart library.
import "./charts.css";

import { drawSparkline } from "./options/sparkline";

interface Props {
  values: readonly (number | null)[];
  /** What the line shows, for those who cannot see it. */
  label: string;
  width?: number;
  height?: number;
  tone?: "neutral" | "good" | "bad";
}

export function Sparkline({ values, label, width = 88, height = 20, tone = "neutral" }: Props) {
  const drawn = drawSparkline(values, width, height);
  if (drawn === null) return null;
  return (
    <svg
      className={`sparkline sparkline-${tone}`}
      width={width}
      height={height}
      viewBox={`0 0 ${String(width)} ${String(height)}`}
      role="img"
      aria-label={label}
    >
      {drawn.paths.map((path) => (
        <path key={path} d={path} fill="none" stroke="currentColor" strokeWidth={1.25} strokeLinejoin="round" />
      ))}
      <circle cx={drawn.last.x} cy={drawn.last.y} r={2} fill="currentColor" />
    </svg>
  );
}
