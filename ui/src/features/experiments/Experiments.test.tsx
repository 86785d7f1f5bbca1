import { screen, within } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { fakeRow } from "../../../tests/fakes/resources";
import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();

it("are filtered by the kinds that the server has, and by the one in the address though it has none of it", async () => {
  server.current.answer("GET", "/api/v1/listing", {
    items: [fakeRow({ kind: "hashing" })],
    next: null,
    total: 1,
    states: {},
    labels: [],
    kinds: ["hashing", "sorting"],
  });
  const { user, address } = await visit("/experiments?kind=gone");
  expect(await screen.findByText("nightly")).toBeDefined();
  const kinds = screen.getByRole("combobox", { name: "Kind" });
  expect(
    within(kinds)
      .getAllByRole("option")
      .map((one) => one.textContent),
  ).toEqual(["Kind: any", "gone", "hashing", "sorting"]);
  await user.selectOptions(kinds, "sorting");
  expect(address()).toBe("/experiments?kind=sorting");
  await vi.waitFor(() =>
    expect(server.current.requestsTo("GET", "/api/v1/listing").at(-1)?.query.kind).toBe("sorting"),
  );
});
