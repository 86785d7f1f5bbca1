// Computes the tint of each cell of a matrix on a logarithmic scale: the worse, the stronger.
import type { MatrixCell, MatrixReport } from "@/api/schema";

export interface HeatCell {
  row: string;
  column: string;
  cell: MatrixCell | null;
  /** 0 is the best of all, 1 the worst; null where there is no number, or one that has no ratio. */
  worse: number | null;
}

/** Return the cells row by row; one that nobody measured is there without a number. */
export function buildHeatCells(report: MatrixReport): HeatCell[][] {
  const known = new Map(report.cells.map((cell) => [cellKey(cell.row, cell.column), cell]));
  const values = report.cells.map((cell) => cell.estimate?.value).filter((one) => one !== undefined);
  const shade = createShader(values, report.better);
  return report.rows.map((row) =>
    report.columns.map((column) => {
      const cell = known.get(cellKey(row, column)) ?? null;
      return { row, column, cell, worse: cell?.estimate ? shade(cell.estimate.value) : null };
    }),
  );
}

function createShader(values: readonly number[], better: MatrixReport["better"]): (value: number) => number | null {
  const least = Math.min(...values);
  // Of what neither way is better, nothing is worse; and what is not above zero has no ratio.
  if (values.length < 2 || least <= 0 || better === "neither") return () => null;
  const spread = Math.log(Math.max(...values) / least);
  if (spread === 0) return () => 0;
  return (value) => {
    const share = Math.log(value / least) / spread;
    return better === "lower" ? share : 1 - share;
  };
}

function cellKey(row: string, column: string): string {
  return JSON.stringify([row, column]);
}
