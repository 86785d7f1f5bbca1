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

  it("is an outage when the server does not answer again: a banner says so over the old numbers", async () => {
    server.current.answer("GET", "/api/v1/overview", fakeOverview("before"));
    const stream = server.current.openStream("/api/v1/events");
    const { client, user } = await visit("/");
    stop = listenForChanges(client);
    expect(await screen.findByRole("link", { name: "before" })).toBeDefined();
    stream.send("changed", { topics: [] }, "a-1");
    await screen.findByText("live");
    server.current.isDown = true;
    stream.cut();
    await screen.findByText("not live");
    expect(screen.queryByText("The server does not answer.")).toBeNull();
    await wait(600);
    expect(await screen.findByText("The server does not answer.")).toBeDefined();
    expect(screen.getByRole("link", { name: "before" })).toBeDefined();
    await act(() => client.refetchQueries({ queryKey: ["overview"] }));
    server.current.isDown = false;
    server.current.answer("GET", "/api/v1/overview", fakeOverview("after"));
    const asked = stream.since.length;
    await user.click(screen.getByRole("button", { name: "Try now" }));
    await vi.waitFor(() => expect(stream.since).toHaveLength(asked + 1));
    stream.send("changed", { topics: [] }, "a-1");
    // The server knows of no change, but what was asked for in vain is asked for again.
    expect(await screen.findByRole("link", { name: "after" })).toBeDefined();
    expect(screen.queryByText("The server does not answer.")).toBeNull();
  });

  it("is no outage where the server wants a token", async () => {
    server.current.answer("GET", "/api/v1/overview", fakeOverview("before"));
    server.current.refuse("GET", "/api/v1/events", { status: 403, detail: "not for this role" });
    const { client } = await visit("/");
    stop = listenForChanges(client);
    await screen.findByText("not live");
    await wait(2000);
    expect(server.current.requestsTo("GET", "/api/v1/events").length).toBeGreaterThan(1);
    expect(screen.queryByText("The server does not answer.")).toBeNull();
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
