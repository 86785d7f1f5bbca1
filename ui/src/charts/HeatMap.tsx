// A matrix as a table of numbers, with each cell tinted by how much worse it is than the best.
import "./charts.css";

import { useMemo } from "react";

import type { MatrixCell, MatrixReport } from "@/api/schema";
import { useMetricTitle } from "@/components/MetricName";
import { Quantity } from "@/components/Quantity";
import { chooseScale, type Scale } from "@/components/number";

import { buildHeatCells, type HeatCell } from "./options/heat";

const MARKS: Record<MatrixCell["mark"], string> = { best: "★ best", "as good": "≈ as good", "": "" };

export function HeatMap({ report }: { report: MatrixReport }) {
  const rows = useMemo(() => buildHeatCells(report), [report]);
  const scale = useMemo(() => chooseScale(report.cells.flatMap((cell) => cell.estimate ?? [])), [report]);
  const label = `${useMetricTitle()(report.metric)} by ${report.terms.rows} and ${report.terms.columns}`;
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label={label}>
      <table className="heat">
        <caption className="unseen">{label}</caption>
        <thead>
          <tr>
            <th scope="col">
              {report.terms.rows} ╲ {report.terms.columns}
            </th>
            {report.columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, index) => (
            <tr key={report.rows[index]}>
              <th scope="row">{report.rows[index]}</th>
              {cells.map((one) => (
                <TintedCell key={one.column} of={one} scale={scale} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function TintedCell({ of: { cell, worse }, scale }: { of: HeatCell; scale: Scale }) {
  const tint = worse === null ? undefined : { "--worse": `${Math.round(6 + 44 * worse)}%` };
  return (
    <td
      className={worse === null ? undefined : "tinted"}
      style={tint as React.CSSProperties | undefined}
      title={cell?.note || undefined}
    >
      <Quantity of={cell?.estimate} grade={cell?.grade ?? undefined} scale={scale} />
      {cell?.mark && <div className={cell.mark === "best" ? "ink-good small" : "muted small"}>{MARKS[cell.mark]}</div>}
      {cell?.note && <div className="muted small">{cell.note}</div>}
    </td>
  );
}
