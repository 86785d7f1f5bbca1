import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();

it("says in the server's words why there is no curve", async () => {
  server.current.answer("GET", "/api/v1/kinds", { items: [] }).refuse("GET", "/api/v1/sweep", {
    status: 422,
    code: "no_sweep",
    detail: "no job has a level of load, so there is no sweep",
    hint: "",
  });
  await visit("/load?ids=x1");
  expect(await screen.findByText("No job has a level of load, so there is no sweep")).toBeDefined();
});
