// A chart of several jobs together, as their kind of workload draws them.
import { useMemo } from "react";

import type { JobPlot } from "@/api/schema";

import { Chart } from "./Chart";
import { drawJobPlot } from "./options/jobPlot";
import { useChartTheme } from "./theme";

export function JobPlotChart({ plot }: { plot: JobPlot }) {
  const theme = useChartTheme();
  const drawing = useMemo(() => drawJobPlot(plot, theme), [plot, theme]);
  return <Chart {...drawing} label={plot.title} />;
}
