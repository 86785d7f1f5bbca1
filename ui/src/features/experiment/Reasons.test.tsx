import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { fakeEntry } from "../../../tests/fakes/results";
import { showPart } from "../../../tests/visit";

import { Reasons } from "./Reasons";

it("calls what takes nothing from a number a note, and not valid", async () => {
  const reasons = [{ code: "slo_missed", grade: "valid" as const, text: "The limit on End to end p99 was missed." }];
  await showPart(<Reasons entries={[fakeEntry("x1-001", { verdict: { grade: "valid", reasons } })]} />);
  expect(screen.getByText("note")).toBeDefined();
  expect(screen.queryByText("valid")).toBeNull();
});
