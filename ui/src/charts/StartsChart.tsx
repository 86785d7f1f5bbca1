// A chart that compares cold and warm starts of a job's runs.
import { useMemo } from "react";

import type { Starts } from "@/api/schema";

import { Chart } from "./Chart";
import { drawStarts } from "./options/starts";
import { useChartTheme } from "./theme";

export function StartsChart({ starts }: { starts: Starts }) {
  const theme = useChartTheme();
  const drawing = useMemo(() => drawStarts(starts, theme), [starts, theme]);
  return <Chart {...drawing} label={`Cold and warm starts of ${starts.title}`} />;
}
