import { describe, expect, it } from "vitest";

import { FAKE_CHART_THEME } from "../../../tests/fakes/theme";
import { legendOption, spreadNames } from "./drawing";
import { drawTelemetry } from "./telemetry";

describe("an axis", () => {
  it("has its marks at round numbers of the unit that is written", () => {
    const MIB = 2 ** 20;
    const counter = { probe: "host", counter: "memory", unit: "B", at_s: [0, 600], value: [30 * MIB, 210 * MIB] };
    const { option } = drawTelemetry({ job_id: "j", title: "t", series: [counter], measured: [] }, FAKE_CHART_THEME);
    const [memory] = option.yAxis as { name: string; interval: number; max: (extent: { max: number }) => number }[];
    expect(memory?.name).toBe("host memory, MiB");
    expect((memory?.interval ?? 0) / MIB).toBe(50);
    expect((memory?.max({ max: 210 * MIB }) ?? 0) / MIB).toBe(250);
    const [time] = option.xAxis as { name: string; interval: number; max: (extent: { max: number }) => number }[];
    expect(time).toMatchObject({ name: "min since the first run began", interval: 120 });
    expect(time?.max({ max: 610 })).toBe(720);
  });

  it("has them though the numbers lie far apart, where it is straight", () => {
    const MIB = 2 ** 20;
    const counter = { probe: "", counter: "disk reads", unit: "B/s", at_s: [0, 600], value: [0.1 * MIB, 90 * MIB] };
    const { option } = drawTelemetry({ job_id: "j", title: "t", series: [counter], measured: [] }, FAKE_CHART_THEME);
    const [disk] = option.yAxis as { type: string; name: string; interval?: number }[];
    expect(disk).toMatchObject({ type: "value", name: "disk reads, MiB/s" });
    expect((disk?.interval ?? 0) / MIB).toBe(20);
  });
});

const name = (dataIndex: number, x: number, y: number, width = 100) => ({
  dataIndex,
  seriesIndex: 0,
  rect: { x: x - 14, y: y - 4, width: 8, height: 8 },
  labelRect: { x, y: y - 6, width, height: 9 },
});

describe("a legend", () => {
  it("has lines that hold tall letters, and arrows that are seen on any ground", () => {
    expect(legendOption(FAKE_CHART_THEME, ["a"])).toMatchObject({
      textStyle: { lineHeight: 18 },
      pageIconColor: FAKE_CHART_THEME.accent,
      pageIconInactiveColor: FAKE_CHART_THEME.grid,
    });
  });
});

describe("names beside dots", () => {
  it("take the next free line where they would overlap, and stay by their dots where they do not", () => {
    const layout = spreadNames();
    const names = [name(0, 40, 100), name(1, 60, 100), name(2, 300, 101), name(3, 50, 101)];
    expect(names.map((one) => layout(one).dy)).toEqual([-12, -26, -12, 2]);
  });

  it("overlap on a narrow picture and not on a wide one, and are placed anew when it changes", () => {
    const layout = spreadNames();
    expect([name(0, 40, 100), name(1, 90, 100)].map((one) => layout(one).dy)).toEqual([-12, -26]);
    expect([name(0, 40, 100), name(1, 290, 100)].map((one) => layout(one).dy)).toEqual([-12, -12]);
  });

  it("stay where they are when they are drawn again", () => {
    const layout = spreadNames();
    const moved = { ...name(1, 60, 100), labelRect: { x: 60, y: 68, width: 100, height: 9 } };
    expect([name(0, 40, 100), name(1, 60, 100)].map((one) => layout(one).dy)).toEqual([-12, -26]);
    expect([name(0, 40, 100), moved].map((one) => layout(one).dy)).toEqual([-12, -26]);
  });

  it("do not leave the picture above", () => {
    const layout = spreadNames();
    expect([name(0, 40, 30), name(1, 40, 30)].map((one) => layout(one).dy)).toEqual([-12, 2]);
  });
});
