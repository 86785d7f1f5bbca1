// A chart of a running load that grows with each tick.
import { useMemo } from "react";

import { Chart } from "./Chart";
import { drawLiveLoad, type Tick } from "./options/live";
import { useChartTheme } from "./theme";

export function LiveChart({ ticks, label }: { ticks: readonly Tick[]; label: string }) {
  const theme = useChartTheme();
  const drawing = useMemo(() => drawLiveLoad(ticks, theme), [ticks, theme]);
  return <Chart {...drawing} label={label} />;
}
