import { screen } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";

import { findChart } from "../../tests/fakeCharts";
import { showPart } from "../../tests/visit";

import { Chart } from "./Chart";

const OPTION = { xAxis: [{}, {}], grid: [{ bottom: 44 }, { top: 200, height: 100 }], series: [] };
const TABLE = { columns: ["a"], rows: [["1"]] };

afterEach(() => vi.restoreAllMocks());

async function showChart(option: Record<string, unknown> = OPTION) {
  const visited = await showPart(<Chart option={option} label="Time of a run" table={TABLE} height={200} note="cut" />);
  const place = screen.getByRole("img", { name: "Time of a run" });
  await vi.waitFor(() => expect(findChart(place)).toBeDefined());
  return { ...visited, place, option: () => findChart(place)?.option as Record<string, unknown> };
}

describe("a chart", () => {
  it("is zoomed along all its bottom axes by a bar below it, for which it makes room", async () => {
    const { user, option, place } = await showChart();
    expect(option()["dataZoom"]).toBeUndefined();
    await user.click(screen.getByRole("button", { name: "Zoom" }));
    expect(option()["dataZoom"]).toMatchObject([{ type: "slider", xAxisIndex: [0, 1] }, { type: "inside" }]);
    expect(option()["grid"]).toEqual([{ bottom: 80 }, { top: 200, height: 100 }]);
    expect(place.style.height).toBe("236px");
    await user.click(screen.getByRole("button", { name: "Show all" }));
    expect(option()["dataZoom"]).toBeUndefined();
  });

  it("offers no second bar where it has one by itself", async () => {
    await showChart({ ...OPTION, dataZoom: [{ type: "slider" }] });
    expect(screen.queryByRole("button", { name: "Zoom" })).toBeNull();
  });

  it("is saved as a picture that is called what it shows, and says what it leaves out", async () => {
    const saved: string[] = [];
    vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(function (this: HTMLAnchorElement) {
      saved.push(this.download);
    });
    const { user } = await showChart();
    expect(screen.getByText("cut")).toBeDefined();
    await user.click(screen.getByRole("button", { name: "Save as PNG" }));
    await vi.waitFor(() => expect(saved).toEqual(["Time-of-a-run.png"]));
  });
});
