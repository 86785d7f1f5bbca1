// Bars of one number of every job, with their intervals.
import type { Entry, Estimate, ResultColumn } from "@/api/schema";
import { chooseScale } from "@/components/number";
import { Quantity } from "@/components/Quantity";

// More bars than this are read as a table.
const MOST_BARS = 16;

interface Bar {
  entry: Entry;
  estimate: Estimate;
}

export function Bars({ bars, column }: { bars: readonly Bar[]; column: ResultColumn }) {
  if (bars.length === 0) return null;
  const scale = chooseScale(bars.map(({ estimate }) => estimate));
  const most = Math.max(...bars.map(({ estimate }) => estimate.high ?? estimate.value));
  return (
    <figure className="bars">
      <figcaption className="muted small">
        {column.label}
        {column.better !== "neither" && `, ${column.better} is better`}
      </figcaption>
      <ul>
        {bars.map(({ entry, estimate }) => (
          <li key={entry.job.id} className={entry.summary.verdict.grade}>
            <span className="title" title={entry.summary.title}>
              {entry.summary.title || entry.job.id}
            </span>
            <span className="track" aria-hidden>
              <span className="fill" style={{ width: share(estimate.value, most) }} />
              {estimate.low != null && estimate.high != null && (
                <span
                  className="whisker"
                  style={{ left: share(estimate.low, most), width: share(estimate.high - estimate.low, most) }}
                />
              )}
            </span>
            <Quantity
              of={estimate}
              scale={scale}
              grade={entry.summary.verdict.grade}
              asShare={column.format === "share"}
            />
          </li>
        ))}
      </ul>
    </figure>
  );
}

/** What is drawn of a number; nothing where there is only one, or too many to be read as bars. */
export function findBars(entries: readonly Entry[], key: string): Bar[] {
  const found = entries.flatMap((entry) => {
    const estimate = entry.summary.estimates[key];
    return estimate && estimate.value > 0 ? [{ entry, estimate }] : [];
  });
  return found.length < 2 || found.length > MOST_BARS ? [] : found;
}

function share(value: number, most: number): string {
  return `${(100 * value) / most}%`;
}
