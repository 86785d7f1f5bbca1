import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { fakeServer } from "../../tests/server";
import { visit } from "../../tests/visit";

const server = fakeServer();

describe("what is not there", () => {
  it("has a title and a way back where no page has the address", async () => {
    await visit("/nowhere");
    const content = within(screen.getByRole("main"));
    expect(content.getByRole("heading", { level: 1 }).textContent).toBe("Page not found");
    expect(document.title).toBe("Page not found · Prony");
    expect(content.getByRole("link", { name: "To the overview" }).getAttribute("href")).toBe("/");
  });

  it.each([
    ["/experiments/gone", "/api/v1/experiments/{experiment_id}", "No such experiment", "/experiments"],
    ["/schedules/gone", "/api/v1/schedules/{schedule_id}", "No such schedule", "/schedules"],
    ["/alarms/gone", "/api/v1/alarms/{alarm_id}", "No such alarm", "/alarms"],
    ["/history/gone", "/api/v1/series/{series_id}", "No such series", "/history"],
  ] as const)("leads from %s to those that there are", async (address, path, title, back) => {
    server.current.refuse("GET", path, { status: 404, detail: "not found" });
    await visit(address);
    expect((await screen.findByRole("heading", { level: 1 })).textContent).toBe(title);
    const ways = within(screen.getByRole("main")).getAllByRole("link");
    expect(ways.map((one) => one.getAttribute("href"))).toContain(back);
  });
});
