import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { fakeEntry, fakeResults } from "../../../tests/fakes/results";
import { showPart } from "../../../tests/visit";

import { Answer } from "./Answer";

describe("the answer", () => {
  it("has its sentence above a bar for every job that has the number", async () => {
    await showPart(<Answer data={fakeResults({ answers: ["a is the fastest."] })} />);
    expect(screen.getByText("a is the fastest.")).toBeDefined();
    expect(screen.getAllByRole("listitem")).toHaveLength(2);
  });

  it("has no bars for one job alone", async () => {
    await showPart(<Answer data={fakeResults({ answers: ["a takes 4 ms."], entries: [fakeEntry("x1-001")] })} />);
    expect(screen.getByText("a takes 4 ms.")).toBeDefined();
    expect(screen.queryByRole("figure")).toBeNull();
  });

  it("is left out where nothing is known", async () => {
    await showPart(<Answer data={fakeResults({ answers: [] })} />);
    expect(screen.queryByLabelText("Answer")).toBeNull();
  });
});
