// A chart of what the probes of a device read lately, one panel per quantity.
import { useMemo } from "react";

import type { RecentReadings } from "@/api/schema";
import { formatClock } from "@/components/time";

import { Chart } from "./Chart";
import { drawTelemetry } from "./options/telemetry";
import { useChartTheme } from "./theme";

export function ReadingsChart({ readings, part, label }: { readings: RecentReadings; part: string; label: string }) {
  const theme = useChartTheme();
  const drawing = useMemo(() => {
    const instants = readings.at.map((at) => Date.parse(at));
    const begin = instants[0] ?? 0;
    const at_s = instants.map((at) => (at - begin) / 1000);
    const series = readings.lines
      .filter((line) => line.part === part)
      .map(({ title, unit, values }) => ({ probe: "", counter: title, unit, at_s, value: values }));
    return drawTelemetry({ series, measured: [] }, theme, `since ${formatClock(begin)}`);
  }, [readings, part, theme]);
  return <Chart {...drawing} label={label} />;
}
