// Numbers in, the paths of a small line out; a gap where a number is missing.
interface Place {
  x: number;
  y: number;
}

export interface SparklinePaths {
  paths: string[];
  last: Place;
}

const MARGIN = 3;

/** Return what to draw, or null where no number is known. */
export function sparkline(values: readonly (number | null)[], width: number, height: number): SparklinePaths | null {
  const known = values.filter((value): value is number => value !== null && Number.isFinite(value));
  if (known.length === 0) return null;
  const low = Math.min(...known);
  const span = Math.max(...known) - low;
  const step = values.length > 1 ? (width - 2 * MARGIN) / (values.length - 1) : 0;
  const place = (value: number, index: number): Place => ({
    x: rounded(values.length > 1 ? MARGIN + index * step : width / 2),
    // Numbers that are all the same lie in the middle: a line at the bottom would look like zero.
    y: rounded(span === 0 ? height / 2 : height - MARGIN - ((value - low) / span) * (height - 2 * MARGIN)),
  });
  return { paths: runsOf(values, place), last: lastOf(values, place) };
}

type Placing = (value: number, index: number) => Place;

function runsOf(values: readonly (number | null)[], place: Placing): string[] {
  const paths: string[] = [];
  let run: string[] = [];
  const close = () => {
    if (run.length > 1) paths.push(`M${run.join("L")}`);
    run = [];
  };
  values.forEach((value, index) => {
    if (value === null || !Number.isFinite(value)) {
      close();
      return;
    }
    const { x, y } = place(value, index);
    run.push(`${String(x)} ${String(y)}`);
  });
  close();
  return paths;
}

function lastOf(values: readonly (number | null)[], place: Placing): Place {
  const index = values.findLastIndex((value) => value !== null && Number.isFinite(value));
  return place(values[index] ?? 0, index);
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}
