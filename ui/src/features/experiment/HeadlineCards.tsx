// The first numbers of one job, or the headline of each job where they differ, written large.
import type { Entry, Estimate, ResultColumn, ShownResults } from "@/api/schema";
import { Quantity } from "@/components/Quantity";

const MOST_OF_ONE = 4;
const MOST_JOBS = 8;

interface Headline {
  entry: Entry;
  title: string;
  column: ResultColumn;
  estimate: Estimate;
}

export function findHeadlines({ entries, columns }: ShownResults): Headline[] {
  const [only] = entries;
  if (entries.length === 1 && only)
    return columns.slice(0, MOST_OF_ONE).flatMap((column) => readHeadline(only, column, column.label));
  const found = entries.flatMap((entry) =>
    columns
      .filter((column) => column.is_headline)
      .flatMap((column) => readHeadline(entry, column, `${entry.summary.title || entry.job.id}: ${column.label}`))
      .slice(0, 1),
  );
  return found.length > MOST_JOBS ? [] : found;
}

function readHeadline(entry: Entry, column: ResultColumn, title: string): Headline[] {
  const estimate = entry.summary.estimates[column.key];
  return estimate ? [{ entry, title, column, estimate }] : [];
}

export function HeadlineCards({ of: headlines }: { of: readonly Headline[] }) {
  if (headlines.length === 0) return null;
  return (
    <ul className="headlines" aria-label="Headline numbers">
      {headlines.map(({ entry, title, column, estimate }) => (
        <li key={`${entry.job.id} ${column.key}`} className="card">
          <div className="muted small">{title}</div>
          <Quantity of={estimate} grade={entry.summary.verdict.grade} asShare={column.format === "share"} big />
        </li>
      ))}
    </ul>
  );
}
