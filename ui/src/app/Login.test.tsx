import { screen } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";

import { currentToken, setToken } from "@/api/token";

import { fakeGlance } from "../../tests/fakes/resources";
import { fakeServer } from "../../tests/server";
import { visit } from "../../tests/visit";

const server = fakeServer();

describe("a server that asks for a token", () => {
  it("is given one by a person, who then sees the page, and it goes with every question", async () => {
    server.current.refuse("GET", "/api/v1/overview", { status: 401, detail: "a token is needed" });
    const { user } = await visit("/");
    const place = await screen.findByLabelText<HTMLInputElement>(/^Token/);
    expect(place.type).toBe("password");
    server.current.answer("GET", "/api/v1/overview", fakeGlance());
    await user.type(place, " prony_abc ");
    await user.click(screen.getByRole("button", { name: "Enter" }));
    expect(await screen.findByRole("heading", { name: "Overview" })).toBeDefined();
    expect(server.current.requests.at(-1)?.headers.get("Authorization")).toBe("Bearer prony_abc");
  });

  it("says why a token is refused, forgets it and asks again", async () => {
    server.current.refuse("GET", "/api/v1/overview", { status: 401, detail: "this token was revoked" });
    const { user } = await visit("/");
    await user.type(await screen.findByLabelText(/^Token/), "prony_old");
    await user.click(screen.getByRole("button", { name: "Enter" }));
    await vi.waitFor(() => expect(server.current.requestsTo("GET", "/api/v1/overview")).toHaveLength(2));
    expect((await screen.findByLabelText<HTMLInputElement>(/^Token/)).value).toBe("");
    expect(screen.getByRole("alert").textContent).toContain("this token was revoked");
    expect(currentToken()).toBe("");
  });

  it("says which command prints a link", async () => {
    server.current.refuse("GET", "/api/v1/overview", { status: 401, detail: "a token is needed" });
    await visit("/");
    expect(await screen.findByText("prony server link")).toBeDefined();
  });

  it("is left by logging out: the session ends, the token is forgotten, and the page asks again", async () => {
    setToken("prony_abc");
    server.current.answer("GET", "/api/v1/overview", fakeGlance());
    server.current.answer("GET", "/api/v1/about", {
      asks_tokens: true,
      grafana: "",
      prometheus: "",
      name: "owner",
      role: "admin",
      url: "",
      version: "1",
    });
    server.current.answerLogOut();
    const { user } = await visit("/");
    await user.click(await screen.findByRole("button", { name: "Log out" }));
    expect(await screen.findByLabelText(/^Token/)).toBeDefined();
    expect(currentToken()).toBe("");
    expect(server.current.requests.filter((one) => one.path === "/logout").map((one) => one.method)).toEqual(["POST"]);
  });
});
