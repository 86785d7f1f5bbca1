// A chart of throughput and latency against load for one curve of a sweep.
import { useMemo } from "react";

import type { Curve } from "@/api/schema";

import { Chart } from "./Chart";
import { drawSweep } from "./options/sweep";
import { useChartTheme } from "./theme";

export function SweepChart({ curve }: { curve: Curve }) {
  const theme = useChartTheme();
  const drawing = useMemo(() => drawSweep(curve, theme), [curve, theme]);
  return <Chart {...drawing} label={`Throughput and latency against load: ${curve.title || curve.noun}`} />;
}
