import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { fakeAlarm } from "../../../tests/fakes/resources";
import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();

describe("an alarm", () => {
  it("waits for a word or for a limit, tells several addresses, and shows its secret one time", async () => {
    server.current.answer("GET", "/api/v1/alarms", { items: [], next: null });
    server.current.answer("POST", "/api/v1/alarms", { alarm: fakeAlarm({ name: "slow" }), secret: "whsec_1" });
    const { user } = await visit("/alarms");
    await user.click((await screen.findAllByRole("button", { name: "Add an alarm" }))[0] ?? document.body);
    const form = within(screen.getByRole("dialog"));
    await user.type(form.getByLabelText("Name"), "slow");
    expect(form.queryByLabelText("Limit")).toBeNull();
    await user.selectOptions(form.getByLabelText("When"), "a metric crosses a limit");
    await user.type(form.getByLabelText("Limit"), "inference_ms.p99 > 20");
    await user.type(form.getByLabelText("Addresses to notify"), "webhook+https://a.example{Enter}mailto://b.example");
    await user.type(form.getByLabelText("Only for the labels"), "team=vision, stage=a=b");
    await user.type(form.getByLabelText("Only for the owner"), "ana");
    await user.click(form.getByRole("button", { name: "Add it" }));
    expect(await screen.findByText("whsec_1")).toBeDefined();
    expect(server.current.requestsTo("POST", "/api/v1/alarms")[0]?.body).toMatchObject({
      name: "slow",
      when: "inference_ms.p99 > 20",
      severity: "warning",
      to: ["webhook+https://a.example", "mailto://b.example"],
      via: [],
      recipe: null,
      labels: { team: "vision", stage: "a=b" },
      owner: "ana",
    });
    await user.click(screen.getByRole("button", { name: "I have saved it" }));
    expect(screen.queryByText("whsec_1")).toBeNull();
  });

  it("says in the list what it is aimed at", async () => {
    const aimed = fakeAlarm({ recipe: "nightly", labels: { team: "vision" }, owner: "ana" });
    server.current.answer("GET", "/api/v1/alarms", {
      items: [aimed, fakeAlarm({ id: "al2", name: "calm" })],
      next: null,
    });
    await visit("/alarms");
    expect(
      within(await screen.findByRole("row", { name: /^ops/ })).getByText("nightly, team=vision, by ana"),
    ).toBeDefined();
    expect(within(screen.getByRole("row", { name: /^calm/ })).getByText("anything")).toBeDefined();
  });

  it("says in the list whether what it waits for is so, and that it tells nobody", async () => {
    server.current.answer("GET", "/api/v1/alarms", {
      items: [fakeAlarm({ open: 2 }), fakeAlarm({ id: "al2", name: "calm", to: ["mailto://…"] })],
      next: null,
    });
    await visit("/alarms");
    const loud = within(await screen.findByRole("row", { name: /^ops/ }));
    expect(loud.getByText("2 open")).toBeDefined();
    expect(loud.getByText("nobody")).toBeDefined();
    expect(within(screen.getByRole("row", { name: /^calm/ })).getByText("nothing open")).toBeDefined();
  });
});
