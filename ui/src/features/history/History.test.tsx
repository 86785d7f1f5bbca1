import { screen, within } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";

import { findChart } from "../../../tests/fakeCharts";
import { fakeChange, fakeHistory, fakeSeries } from "../../../tests/fakes/analysis";
import { fakeCatalogue } from "../../../tests/fakes/resources";
import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();

describe("a history", () => {
  it("leads from a point to its experiment in one click", async () => {
    server.current.answer("GET", "/api/v1/series/{series_id}", fakeHistory());
    const { address } = await visit("/history/s1");
    const picture = await screen.findByRole("img", { name: "History of nightly batch=1 on bench-1" });
    const chart = await vi.waitFor(() => findChart(picture) ?? Promise.reject(new Error("not drawn yet")));
    chart.click((data) => data["experimentId"] === "e20");
    await vi.waitFor(() => expect(address()).toBe("/experiments/e20"));
  });

  it("can be read as a table by who cannot see the chart", async () => {
    server.current.answer("GET", "/api/v1/series/{series_id}", fakeHistory());
    const { user } = await visit("/history/s1");
    await user.click(await screen.findByRole("button", { name: "Show as a table" }));
    const table = within(screen.getByRole("region", { name: "History of nightly batch=1 on bench-1" }));
    expect(table.getAllByRole("row")).toHaveLength(26);
    expect(table.getAllByRole("row").at(-1)?.textContent).toContain("12.0 ms");
  });

  it("says when each level was, and from how many results", async () => {
    const points = fakeHistory().points.map((point, index) => ({
      ...point,
      measured_at: `2026-10-${String(index + 1).padStart(2, "0")}T12:00:00Z`,
    }));
    server.current.answer("GET", "/api/v1/series/{series_id}", fakeHistory({ points }));
    await visit("/history/s1");
    const days = await screen.findByText("21 Oct 2026 to 25 Oct 2026");
    expect(days.nextSibling?.textContent).toBe("12.00 ms [11.80, 12.20], 5 results");
    expect(screen.getByText("1 Oct 2026 to 20 Oct 2026")).toBeDefined();
  });

  it("shows a branch with the result that it forked from", async () => {
    const fork = {
      base: "main",
      commit: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
      is_known: false,
      note: "no result of main is known to be before it",
      series_id: "s0",
      job_id: "e7-001",
      experiment_id: "e7",
      measured_at: "2026-11-15T03:00:00Z",
      value: 10,
      against: 0.2,
    };
    const series = fakeSeries({ branch: "feature", default_branch: "main" });
    server.current.answer("GET", "/api/v1/series/{series_id}", fakeHistory({ series, fork }));
    await visit("/history/s1");
    expect(await screen.findByText("main at 4b825dc642cb")).toBeDefined();
    expect(screen.getByText("e7-001")).toBeDefined();
    expect(screen.getByText("no result of main is known to be before it")).toBeDefined();
    expect(screen.getByText(/branch feature/)).toBeDefined();
  });

  it("says what changed with its evidence, and takes a person's word that it is known", async () => {
    server.current.answer("GET", "/api/v1/series/{series_id}", fakeHistory());
    server.current.answer("POST", "/api/v1/changes/{change_id}/ack", fakeChange({ state: "acknowledged" }));
    server.current.answer("GET", "/api/v1/recipes/names", fakeCatalogue());
    const { user } = await visit("/history/s1");
    expect(await screen.findByText("regression, found")).toBeDefined();
    expect(await screen.findByRole("option", { name: "Inference p50 (headline)" })).toBeDefined();
    expect(screen.getByText("Inference p50 is 20 % worse since e20-001.")).toBeDefined();
    await user.click(screen.getByRole("button", { name: "Acknowledge" }));
    await user.type(screen.getByLabelText("Reason"), "new kernel");
    await user.click(screen.getByLabelText("This change was expected"));
    await user.click(screen.getByRole("button", { name: "Acknowledge it" }));
    await vi.waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    expect(server.current.requestsTo("POST", "/api/v1/changes/{change_id}/ack")[0]?.body).toMatchObject({
      reason: "new kernel",
      expected: true,
    });
  });
});
