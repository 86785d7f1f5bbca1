// The colours that charts are drawn with in tests: `happy-dom` computes none from the page's CSS.
import type { ChartTheme } from "@/charts/theme";

export const FAKE_CHART_THEME: ChartTheme = {
  text: "#111",
  muted: "#666",
  grid: "#ddd",
  surface: "#fff",
  series: ["#0072b2", "#d55e00", "#009e73", "#cc79a7"],
  good: "#008",
  bad: "#a00",
  warn: "#960",
  accent: "#05a",
  font: "sans-serif",
};
