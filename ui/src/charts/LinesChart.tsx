// A chart of what a job reported step by step.
import { useMemo } from "react";

import type { StepLines } from "@/api/schema";

import { Chart } from "./Chart";
import { drawLines } from "./options/lines";
import { useChartTheme } from "./theme";

export function LinesChart({ lines }: { lines: StepLines }) {
  const theme = useChartTheme();
  const drawing = useMemo(() => drawLines(lines, theme), [lines, theme]);
  return <Chart {...drawing} label={`${lines.title} step by step`} />;
}
