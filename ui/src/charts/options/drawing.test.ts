import { describe, expect, it } from "vitest";

import type { ChartTheme } from "../theme";
import { spreadNames } from "./drawing";
import { drawTelemetry } from "./telemetry";

const THEME: ChartTheme = {
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

describe("an axis", () => {
  it("has its marks at round numbers of the unit that is written", () => {
    const MIB = 2 ** 20;
    const counter = { probe: "host", counter: "memory", unit: "B", at_s: [0, 600], value: [30 * MIB, 210 * MIB] };
    const { option } = drawTelemetry({ job_id: "j", title: "t", series: [counter], measured: [] }, THEME);
    const [memory] = option.yAxis as { name: string; interval: number; max: (extent: { max: number }) => number }[];
    expect(memory?.name).toBe("host memory, MiB");
    expect((memory?.interval ?? 0) / MIB).toBe(50);
    expect((memory?.max({ max: 210 * MIB }) ?? 0) / MIB).toBe(250);
    const [time] = option.xAxis as { name: string; interval: number }[];
    expect(time).toMatchObject({ name: "min since the first run began", interval: 120 });
  });
});

describe("names beside dots", () => {
  it("stand above each other where dots are near, and each by its dot where they are not", () => {
    const layout = spreadNames([
      { x: 43, y: 0.363 },
      { x: 50, y: 0.36 },
      { x: 215, y: 0.352 },
      { x: 45, y: 0.1 },
    ]);
    expect([0, 1, 2, 3].map((dataIndex) => layout({ dataIndex }).dy)).toEqual([-12, -26, -12, -12]);
  });
});
