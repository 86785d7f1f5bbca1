// An ECharts chart that can be zoomed and saved, with the same numbers as a table for those who cannot see it.
import type { ECharts, EChartsCoreOption } from "echarts/core";
import { useEffect, useMemo, useRef, useState } from "react";

import { saveBlob } from "@/api/client";
import { loadPart } from "@/api/loadPart";
import { useAction } from "@/components/toasts";

import { addZoom, hasZoom, ZOOM_HEIGHT } from "./options/zoom";
import { useChartTheme } from "./theme";

export interface ChartTable {
  columns: readonly string[];
  rows: readonly (readonly string[])[];
}

interface Props {
  option: EChartsCoreOption;
  label: string;
  table: ChartTable;
  height?: number;
  /** What the picture leaves out. */
  note?: string | undefined;
  onPick?: ((data: unknown) => void) | undefined;
}

export function Chart({ option, label, table, height = 260, note, onPick }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<ECharts | null>(null);
  const [asTable, setAsTable] = useState(false);
  const [isZoomed, setIsZoomed] = useState(false);
  const shown = useMemo(() => (isZoomed ? addZoom(option) : option), [option, isZoomed]);
  const latest = useRef({ option: shown, onPick });
  const theme = useChartTheme();
  const act = useAction();

  useEffect(() => {
    latest.current = { option: shown, onPick };
    chart.current?.setOption(shown, { notMerge: true });
  }, [shown, onPick]);

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

  const drawnHeight = height + (isZoomed ? ZOOM_HEIGHT : 0);
  const save = async (): Promise<void> => {
    const made = chart.current;
    if (made) saveBlob(await renderPng(made, theme.surface), `${fileNameOf(label)}.png`);
  };
  return (
    <figure className="chart">
      {asTable ? (
        <div key="table" className="scroll" style={{ maxHeight: height }} tabIndex={0} role="region" aria-label={label}>
          <DataRows label={label} table={table} />
        </div>
      ) : (
        // An element of its own: what is drawn in is wiped when the drawing goes, and the table must not go with it.
        <div key="drawing" ref={place} role="img" aria-label={label} style={{ height: drawnHeight }} />
      )}
      <figcaption>
        {note && <span className="note small">{note}</span>}
        {!asTable && !hasZoom(option) && (
          <button
            type="button"
            className="button quiet slim"
            aria-pressed={isZoomed}
            title="Drag the ends of the bar, or turn the wheel over the chart"
            onClick={() => setIsZoomed(!isZoomed)}
          >
            {isZoomed ? "Show all" : "Zoom"}
          </button>
        )}
        {!asTable && (
          <button type="button" className="button quiet slim" onClick={() => void act(save)}>
            Save as PNG
          </button>
        )}
        <button type="button" className="button quiet slim" onClick={() => setAsTable(!asTable)}>
          {asTable ? "Show as a chart" : "Show as a table"}
        </button>
      </figcaption>
    </figure>
  );
}

/** Return the picture, at twice the pixels of the screen's: it is meant for slides and papers. */
async function renderPng(chart: ECharts, backgroundColor: string): Promise<Blob> {
  const canvas = chart.renderToCanvas({ pixelRatio: 2, backgroundColor });
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the browser could not make a picture of it"))));
  });
}

/** Return a name that every file system takes. */
function fileNameOf(label: string): string {
  return label.replace(/[^\w.-]+/g, "-").replace(/^-+|-+$/g, "") || "chart";
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
