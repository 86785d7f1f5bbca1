// Adds to any chart a bar below it that chooses which part of its bottom axes is shown.
import type { EChartsCoreOption } from "echarts/core";

/** How much higher a chart becomes by the bar. */
export const ZOOM_HEIGHT = 36;

interface GridBox {
  bottom?: number | string;
}

/** Does the chart have such a bar by itself? */
export function hasZoom(option: EChartsCoreOption): boolean {
  return option["dataZoom"] !== undefined;
}

export function addZoom(option: EChartsCoreOption): EChartsCoreOption {
  const axes = toList(option["xAxis"]).map((_, index) => index);
  return {
    ...option,
    grid: toList(option["grid"]).map((box) => raiseBottom(box as GridBox)),
    dataZoom: [
      {
        type: "slider",
        xAxisIndex: axes,
        bottom: 6,
        height: 20,
        showDataShadow: false,
        // The axis above says where the ends are.
        labelFormatter: "",
      },
      { type: "inside", xAxisIndex: axes },
    ],
  };
}

/** A panel that is placed from the top keeps its place; one that reaches to the bottom makes room. */
function raiseBottom(box: GridBox): GridBox {
  return typeof box.bottom === "number" ? { ...box, bottom: box.bottom + ZOOM_HEIGHT } : box;
}

function toList(part: unknown): unknown[] {
  if (part === undefined) return [];
  return Array.isArray(part) ? part : [part];
}
