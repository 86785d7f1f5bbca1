// Computes the SVG paths of a sparkline, with a gap where a number is missing.
interface PathPoint {
  x: number;
  y: number;
}

export interface SparklinePaths {
  paths: string[];
  last: PathPoint;
}

const MARGIN = 3;

/** Return what to draw, or null where no number is known. */
export function drawSparkline(
  values: readonly (number | null)[],
  width: number,
  height: number,
): SparklinePaths | null {
  const known = values.filter((value): value is number => value !== null && Number.isFinite(value));
  if (known.length === 0) return null;
  const low = Math.min(...known);
  const span = Math.max(...known) - low;
  const step = values.length > 1 ? (width - 2 * MARGIN) / (values.length - 1) : 0;
  const place = (value: number, index: number): PathPoint => ({
    x: roundTenth(values.length > 1 ? MARGIN + index * step : width / 2),
    // Numbers that are all the same lie in the middle: a line at the bottom would look like zero.
    y: roundTenth(span === 0 ? height / 2 : height - MARGIN - ((value - low) / span) * (height - 2 * MARGIN)),
  });
  return { paths: buildPaths(values, place), last: lastPoint(values, place) };
}

type PointPlacer = (value: number, index: number) => PathPoint;

function buildPaths(values: readonly (number | null)[], place: PointPlacer): string[] {
  const paths: string[] = [];
  let run: string[] = [];
  const closePath = () => {
    if (run.length > 1) paths.push(`M${run.join("L")}`);
    run = [];
  };
  values.forEach((value, index) => {
    if (value === null || !Number.isFinite(value)) {
      closePath();
      return;
    }
    const { x, y } = place(value, index);
    run.push(`${String(x)} ${String(y)}`);
  });
  closePath();
  return paths;
}

function lastPoint(values: readonly (number | null)[], place: PointPlacer): PathPoint {
  const index = values.findLastIndex((value) => value !== null && Number.isFinite(value));
  return place(values[index] ?? 0, index);
}

function roundTenth(value: number): number {
  return Math.round(value * 10) / 10;
}
