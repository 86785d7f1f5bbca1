import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();

describe("the check of the store", () => {
  it("begins when it is asked for, and says that all is intact", async () => {
    server.current.answer("POST", "/api/v1/store/check", { results: 12, damages: [] });
    const { user } = await visit("/settings?part=store");
    const button = await screen.findByRole("button", { name: "Check all samples" });
    expect(server.current.requestsTo("POST", "/api/v1/store/check")).toHaveLength(0);
    await user.click(button);
    expect(await screen.findByText("The samples of 12 results are intact.", { exact: false })).toBeDefined();
  });

  it("names each damaged job with a link to its experiment", async () => {
    const damages = [{ experiment_id: "x1", job_id: "x1-2", what: "samples.parquet is damaged" }];
    server.current.answer("POST", "/api/v1/store/check", { results: 3, damages });
    const { user } = await visit("/settings?part=store");
    await user.click(await screen.findByRole("button", { name: "Check all samples" }));
    expect((await screen.findByRole("link", { name: "x1-2" })).getAttribute("href")).toBe("/experiments/x1");
    expect(screen.getByText("samples.parquet is damaged")).toBeDefined();
    expect(screen.getByText(/1 of 3 results/)).toBeDefined();
  });

  it("says why it is refused", async () => {
    server.current.refuse("POST", "/api/v1/store/check", { status: 403, detail: "this needs the role admin" });
    const { user } = await visit("/settings?part=store");
    await user.click(await screen.findByRole("button", { name: "Check all samples" }));
    expect(await screen.findByText(/this needs the role admin/)).toBeDefined();
  });
});
