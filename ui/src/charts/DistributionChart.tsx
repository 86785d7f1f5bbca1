// A chart that overlays distributions of one metric, as a histogram or an ECDF.
import { useMemo } from "react";

import { useMetricTitle } from "@/components/MetricName";

import { Chart } from "./Chart";
import { type DistributionView, drawDistribution, type NamedDistribution } from "./options/distribution";
import { useChartTheme } from "./theme";

export function DistributionChart(props: { shown: readonly NamedDistribution[]; view: DistributionView }) {
  const { shown, view } = props;
  const theme = useChartTheme();
  const title = useMetricTitle()(shown[0]?.distribution.metric ?? "");
  const drawing = useMemo(() => drawDistribution(shown, title, view, theme), [shown, title, view, theme]);
  return <Chart {...drawing} label={`Distribution of ${title}: ${shown.map((one) => one.name).join(", ")}`} />;
}
