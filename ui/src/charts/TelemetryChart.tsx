// A chart of the counters that probes read during a job, one panel per counter.
import { useMemo } from "react";

import type { Counters } from "@/api/schema";

import { Chart } from "./Chart";
import { drawTelemetry } from "./options/telemetry";
import { useChartTheme } from "./theme";

export function TelemetryChart({ counters }: { counters: Counters }) {
  const theme = useChartTheme();
  const drawing = useMemo(() => drawTelemetry(counters, theme), [counters, theme]);
  return <Chart {...drawing} label={`The machine during ${counters.title}`} />;
}
