// A chart of a job's samples over time.
import { useMemo } from "react";

import type { Timeline } from "@/api/schema";

import { useMetricTitle } from "@/components/MetricName";

import { Chart } from "./Chart";
import { drawTimeline } from "./options/timeline";
import { useChartTheme } from "./theme";

export function TimelineChart({ timeline }: { timeline: Timeline }) {
  const theme = useChartTheme();
  const drawing = useMemo(() => drawTimeline(timeline, theme), [timeline, theme]);
  return <Chart {...drawing} label={`${useMetricTitle()(timeline.metric)} of ${timeline.title} over time`} />;
}
