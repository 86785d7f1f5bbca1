import { act, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { fakeGlance, fakeRow } from "../../tests/fakes/resources";
import { fakeServer } from "../../tests/server";
import { visit } from "../../tests/visit";

import { listenForChanges } from "./live";

const server = fakeServer();
let stop = (): void => undefined;

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"],
    shouldAdvanceTime: true,
  });
});
afterEach(() => {
  stop();
  vi.useRealTimers();
});

async function wait(ms: number): Promise<void> {
  await act(() => vi.advanceTimersByTimeAsync(ms));
}

function fakeOverview(name: string) {
  return fakeGlance({ recent: [fakeRow({ name })] });
}

describe("the stream of changes", () => {
  it("is said to be live or lost, comes back where it stopped, and what was missed is asked for anew", async () => {
    server.current.answer("GET", "/api/v1/overview", fakeOverview("before"));
    const stream = server.current.openStream("/api/v1/events");
    const { client } = await visit("/");
    stop = listenForChanges(client);
    expect(await screen.findByRole("link", { name: "before" })).toBeDefined();
    stream.send("changed", { topics: [] }, "a-1");
    expect(await screen.findByText("live")).toBeDefined();
    stream.cut();
    expect(await screen.findByText("not live")).toBeDefined();
    server.current.answer("GET", "/api/v1/overview", fakeOverview("meanwhile"));
    await wait(600);
    await vi.waitFor(() => expect(stream.since).toEqual(["", "a-1"]));
    stream.send("anew", {}, "b-1");
    expect(await screen.findByRole("link", { name: "meanwhile" })).toBeDefined();
    expect(screen.getByText("live")).toBeDefined();
  });

  it("makes a page ask once for many changes, and not for what it does not show", async () => {
    server.current.answer("GET", "/api/v1/overview", fakeOverview("before"));
    const stream = server.current.openStream("/api/v1/events");
    const { client } = await visit("/");
    stop = listenForChanges(client);
    await screen.findByRole("link", { name: "before" });
    await vi.waitFor(() => expect(stream.since).toHaveLength(1));
    stream.send("changed", { topics: ["schedules"] });
    await wait(1100);
    expect(server.current.requestsTo("GET", "/api/v1/overview")).toHaveLength(1);
    server.current.answer("GET", "/api/v1/overview", fakeOverview("after"));
    for (const id of ["x1", "x2", "x3"]) stream.send("changed", { experiments: [id] });
    await wait(1100);
    expect(await screen.findByRole("link", { name: "after" })).toBeDefined();
    expect(server.current.requestsTo("GET", "/api/v1/overview").length).toBeLessThanOrEqual(3);
  });
});
