// An ECharts chart with the same numbers as a table beside it, for those who cannot see the chart.
import type { ECharts, EChartsCoreOption } from "echarts/core";
import { useEffect, useRef, useState } from "react";

import { loadPart } from "@/api/loadPart";

export interface ChartTable {
  columns: readonly string[];
  rows: readonly (readonly string[])[];
}

interface Props {
  option: EChartsCoreOption;
  label: string;
  table: ChartTable;
  height?: number;
  onPick?: ((data: unknown) => void) | undefined;
}

export function Chart({ option, label, table, height = 260, onPick }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<ECharts | null>(null);
  const latest = useRef({ option, onPick });
  const [asTable, setAsTable] = useState(false);

  useEffect(() => {
    latest.current = { option, onPick };
    chart.current?.setOption(option, { notMerge: true });
  }, [option, onPick]);

  useEffect(() => {
    const element = place.current;
    if (!element || asTable) return undefined;
    let isOver = false;
    const observer = new ResizeObserver(() => chart.current?.resize());
    void loadPart(() => import("./echarts")).then(({ init }) => {
      if (isOver) return;
      const made = init(element, null, { renderer: "canvas" });
      made.setOption(latest.current.option);
      made.on("click", (event: { data?: unknown }) => latest.current.onPick?.(event.data));
      chart.current = made;
      observer.observe(element);
    });
    return () => {
      isOver = true;
      observer.disconnect();
      chart.current?.dispose();
      chart.current = null;
    };
  }, [asTable]);

  return (
    <figure className="chart">
      {asTable ? (
        <div key="table" className="scroll" style={{ maxHeight: height }} tabIndex={0} role="region" aria-label={label}>
          <DataRows label={label} table={table} />
        </div>
      ) : (
        // An element of its own: what is drawn in is wiped when the drawing goes, and the table must not go with it.
        <div key="drawing" ref={place} role="img" aria-label={label} style={{ height }} />
      )}
      <figcaption>
        <button type="button" className="button quiet slim" onClick={() => setAsTable(!asTable)}>
          {asTable ? "Show as a chart" : "Show as a table"}
        </button>
      </figcaption>
    </figure>
  );
}

function DataRows({ label, table }: { label: string; table: ChartTable }) {
  return (
    <table>
      <caption className="unseen">{label}</caption>
      <thead>
        <tr>
          {table.columns.map((column) => (
            <th key={column} scope="col">
              {column}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {table.rows.map((row, index) => (
          // Rows of a chart have no identity but their place.
          <tr key={index}>
            {row.map((cell, place) => (
              <td key={place}>{cell}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
