import { fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";

import { fakeServer } from "../../tests/server";

import { ServerLink } from "./ServerLink";
import { Toasts } from "./toasts";

const server = fakeServer();
const assign = vi.spyOn(location, "assign").mockImplementation(() => undefined);

afterEach(() => assign.mockClear());

function showLink(): HTMLElement {
  render(
    <>
      <ServerLink href="/help">Help</ServerLink>
      <Toasts />
    </>,
  );
  return screen.getByRole("link", { name: "Help" });
}

it("is followed where the server answers, though it is not well", async () => {
  server.current.answer("GET", "/api/v1/health", { ok: false, version: "1", parts: [] });
  fireEvent.click(showLink());
  await vi.waitFor(() => expect(assign).toHaveBeenCalledExactlyOnceWith("/help"));
});

it("is not followed to the browser's own error page where it does not, and says so", async () => {
  server.current.isDown = true;
  expect(fireEvent.click(showLink())).toBe(false);
  expect(await screen.findByText("The server does not answer. Try again when it is back.")).toBeDefined();
  expect(assign).not.toHaveBeenCalled();
});

it("opens in another tab as any link does", () => {
  expect(fireEvent.click(showLink(), { ctrlKey: true })).toBe(true);
  expect(server.current.requests).toHaveLength(0);
});
