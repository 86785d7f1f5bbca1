// The chart of one history; clicking a result calls `onPick` with it.
import { useCallback, useMemo } from "react";

import type { History } from "@/api/schema";

import { useMetricTitle } from "@/components/MetricName";

import { Chart } from "./Chart";
import { drawHistory, type PickedResult } from "./options/history";
import { useChartTheme } from "./theme";

interface Props {
  history: History;
  /** The results of this experiment are ringed. */
  highlighted?: string | undefined;
  onPick?: ((result: PickedResult) => void) | undefined;
}

export function HistoryChart({ history, highlighted, onPick }: Props) {
  const theme = useChartTheme();
  const title = useMetricTitle()(history.metric);
  const drawing = useMemo(() => drawHistory(history, title, theme, highlighted), [history, title, theme, highlighted]);
  const pick = useCallback(
    (data: unknown) => {
      if (isResult(data)) onPick?.(data);
    },
    [onPick],
  );
  return <Chart {...drawing} label={`History of ${history.series.title} on ${history.series.machine}`} onPick={pick} />;
}

function isResult(data: unknown): data is PickedResult {
  return typeof data === "object" && data !== null && "experimentId" in data;
}
