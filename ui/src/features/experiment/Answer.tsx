// What the experiment found, in a sentence and a picture: bars of the headline number of every job, with intervals.
import type { Entry, Estimate, ResultColumn, ShownResults } from "@/api/schema";
import { Card } from "@/components/layout";
import { chooseScale } from "@/components/number";
import { Quantity } from "@/components/Quantity";

// More bars than this are read as a table.
const MOST_BARS = 16;

interface Bar {
  entry: Entry;
  estimate: Estimate;
}

export function Answer({ data }: { data: ShownResults }) {
  const [first, ...rest] = data.answers;
  if (first === undefined) return null;
  return (
    <Card label="Answer">
      <div className="stack">
        <p className="answer">{first}</p>
        {rest.map((sentence) => (
          <p key={sentence} className="answer">
            {sentence}
          </p>
        ))}
        <Bars entries={data.entries} column={data.columns.find((one) => one.is_headline)} />
      </div>
    </Card>
  );
}

function Bars({ entries, column }: { entries: readonly Entry[]; column: ResultColumn | undefined }) {
  if (!column) return null;
  const bars = findBars(entries, column.key);
  if (bars.length < 2 || bars.length > MOST_BARS) return null;
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

function findBars(entries: readonly Entry[], key: string): Bar[] {
  return entries.flatMap((entry) => {
    const estimate = entry.summary.estimates[key];
    return estimate && estimate.value > 0 ? [{ entry, estimate }] : [];
  });
}

function share(value: number, most: number): string {
  return `${(100 * value) / most}%`;
}
