// A chart of a job's samples over time.
import { useMemo } from "react";

import type { Timeline } from "@/api/schema";

import { useMetricTitle } from "@/components/MetricName";

import { Chart } from "./Chart";
import { drawTimeline } from "./options/timeline";
import { useChartTheme } from "./theme";

export function TimelineChart({ timeline }: { timeline: Timeline }) {
  const theme = useChartTheme();
  const title = useMetricTitle()(timeline.metric);
  const drawing = useMemo(() => drawTimeline(timeline, title, theme), [timeline, title, theme]);
  return <Chart {...drawing} label={`${title} of ${timeline.title} over time`} />;
}
