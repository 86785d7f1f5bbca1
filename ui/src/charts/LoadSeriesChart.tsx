// A load second by second: one of its runs, the newest unless another is chosen.
import { useMemo, useState } from "react";

import type { LoadSeries } from "@/api/schema";

import { Chart } from "./Chart";
import { drawLoadRun, type LoadRun } from "./options/loadSeries";
import { useChartTheme } from "./theme";

export function LoadSeriesChart({ series }: { series: LoadSeries }) {
  const [chosen, setChosen] = useState<number | null>(null);
  const run = series.runs.find((one) => one.repetition === chosen) ?? series.runs.at(-1);
  if (!run) return null;
  return (
    <div className="stack">
      <div className="row spread">
        {series.runs.length > 1 ? (
          <label className="row">
            <span className="muted">Run</span>
            <select value={run.repetition} onChange={(event) => setChosen(Number(event.target.value))}>
              {series.runs.map((one) => (
                <option key={one.repetition} value={one.repetition}>
                  {one.repetition + 1}
                  {one.excluded && " (not used)"}
                </option>
              ))}
            </select>
          </label>
        ) : (
          <span />
        )}
        <span className="muted small">
          {series.source === "live"
            ? "Live figures of the agent; percentiles are accurate to 1 %."
            : "Computed from every stored request."}
          {run.excluded && ` Not used: ${run.excluded}.`}
        </span>
      </div>
      <RunChart run={run} label={`${series.title} second by second, run ${run.repetition + 1}`} />
    </div>
  );
}

function RunChart({ run, label }: { run: LoadRun; label: string }) {
  const theme = useChartTheme();
  const drawing = useMemo(() => drawLoadRun(run, theme), [run, theme]);
  return <Chart {...drawing} label={label} />;
}
