// The Pareto front of a matrix as a chart.
import { useMemo } from "react";

import type { MatrixReport } from "@/api/schema";

import { useMetricTitle } from "@/components/MetricName";

import { Chart } from "./Chart";
import { drawPareto } from "./options/pareto";
import { useChartTheme } from "./theme";

export function ParetoChart({ report }: { report: MatrixReport }) {
  const theme = useChartTheme();
  const title = useMetricTitle()(report.metric);
  const drawing = useMemo(() => drawPareto(report, title, theme), [report, title, theme]);
  return <Chart {...drawing} label={`Pareto front of ${title}`} />;
}
