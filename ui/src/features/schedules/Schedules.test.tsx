import { screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";

import { fakeExample, fakeSchedule } from "../../../tests/fakes/resources";
import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();

beforeEach(() => {
  server.current.answer("GET", "/api/v1/recipes/examples", { items: [fakeExample()] });
  server.current.answer("GET", "/api/v1/schedules", { items: [], next: null });
});

describe("a schedule", () => {
  it("is made of a recipe and of when, and what the server refuses is said in the form", async () => {
    server.current.refuse("POST", "/api/v1/schedules", {
      status: 422,
      detail: "there is no 25th hour",
      hint: "hours go from 0 to 23",
    });
    const { user } = await visit("/schedules");
    expect(await screen.findByRole("heading", { name: "No schedule yet" })).toBeDefined();
    await user.click(screen.getAllByRole("button", { name: "Add a schedule" })[0] ?? document.body);
    const form = within(screen.getByRole("dialog"));
    await form.findByRole("option", { name: /^quickstart/ });
    await user.selectOptions(form.getByLabelText("Start with"), "quickstart");
    expect(form.getByLabelText<HTMLTextAreaElement>("Recipe").value).toBe(fakeExample().text);
    await user.clear(form.getByLabelText("When"));
    await user.type(form.getByLabelText("When"), "0 25 * * *");
    await user.click(form.getByRole("button", { name: "Add it" }));
    expect((await screen.findByRole("alert")).textContent).toContain("hours go from 0 to 23");
    server.current.answer("POST", "/api/v1/schedules", fakeSchedule());
    server.current.answer("GET", "/api/v1/schedules", { items: [fakeSchedule()], next: null });
    await user.click(form.getByRole("button", { name: "Add it" }));
    expect(await screen.findByRole("link", { name: "every night" })).toBeDefined();
    expect(server.current.requestsTo("POST", "/api/v1/schedules").at(-1)?.body).toMatchObject({
      cron: "0 25 * * *",
      missed: "once",
      name: null,
      submission: { text: fakeExample().text, name: "recipe.yaml" },
    });
  });

  it("says when it is due by the reader's clock, and by that of its own zone", async () => {
    const timing = { cron: "0 3 * * *", zone: "Asia/Kathmandu", missed: "once" } as const;
    server.current.answer(
      "GET",
      "/api/v1/schedules/{schedule_id}",
      fakeSchedule({ timing, next_at: "2026-11-15T03:00:00Z", last_at: null }),
    );
    server.current.answer("GET", "/api/v1/schedules/{schedule_id}/fires", { items: [], next: null });
    await visit("/schedules/s1");
    expect(await screen.findByText("(15 Nov 2026, 08:45:00 GMT+5:45)")).toBeDefined();
  });

  it("is paused, and then offers to be resumed", async () => {
    server.current.answer("GET", "/api/v1/schedules", { items: [fakeSchedule()], next: null });
    server.current.answer("POST", "/api/v1/schedules/{schedule_id}/pause", () => {
      server.current.answer("GET", "/api/v1/schedules", {
        items: [fakeSchedule({ state: "paused", next_at: null })],
        next: null,
      });
      return fakeSchedule({ state: "paused" });
    });
    const { user } = await visit("/schedules");
    await user.click(await screen.findByRole("button", { name: "Pause" }));
    expect(await screen.findByRole("button", { name: "Resume" })).toBeDefined();
    await vi.waitFor(() => expect(screen.getByText("every night is paused")).toBeDefined());
  });
});
