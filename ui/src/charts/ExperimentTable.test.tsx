import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { fakeRow } from "../../tests/fakes/resources";
import { showPart } from "../../tests/visit";

import { ExperimentTable } from "./ExperimentTable";

function findRow(name: string): HTMLElement {
  return screen.getByRole("row", { name: new RegExp(name) });
}

describe("the table of experiments", () => {
  it("shows of each how it stands, its number with the interval, and whether that may be quoted", async () => {
    await showPart(
      <ExperimentTable
        label="Experiments"
        rows={[
          fakeRow(),
          fakeRow({ id: "x2", name: "broken", state: "failed", headline: null, grade: "void", gates: "failed" }),
        ]}
      />,
    );
    const good = within(findRow("nightly"));
    expect(good.getByText("complete")).toBeDefined();
    expect(good.getByText("[12.10, 12.60]")).toBeDefined();
    expect(good.getByText("valid")).toBeDefined();
    const bad = within(findRow("broken"));
    expect(bad.getByText("void")).toBeDefined();
    expect(bad.getByTitle("gates: failed").textContent).toBe("fail");
    expect(bad.getByText("–")).toBeDefined();
  });

  it("shows how far one that runs has come", async () => {
    await showPart(
      <ExperimentTable
        label="Experiments"
        rows={[fakeRow({ state: "running", job_count: 4, counts: { complete: 1, leased: 1, waiting: 2 } })]}
      />,
    );
    expect(screen.getByRole("img", { name: "of 4 jobs: 1 complete, 1 running, 2 waiting" })).toBeDefined();
  });

  it("draws a trend where there is more than one result", async () => {
    await showPart(
      <ExperimentTable
        label="Experiments"
        rows={[fakeRow({ trend: [1, 2, 3] }), fakeRow({ id: "x2", name: "new", trend: [1] })]}
      />,
    );
    expect(screen.getByRole("img", { name: "the last 3 results of nightly" })).toBeDefined();
    expect(within(findRow("new")).queryByRole("img")).toBeNull();
  });

  it("leads to the experiment by its name and by a click anywhere in its row", async () => {
    const { user, address } = await showPart(<ExperimentTable label="Experiments" rows={[fakeRow()]} />);
    expect(screen.getByRole("link", { name: "nightly" }).getAttribute("href")).toBe("/experiments/x1");
    await user.click(screen.getByText("valid"));
    expect(address()).toBe("/experiments/x1");
  });

  it("has a column of labels where any has one", async () => {
    const [plain, labelled] = [fakeRow({ labels: {} }), fakeRow({ id: "x2", labels: { team: "red" } })];
    await showPart(<ExperimentTable label="Some" rows={[plain, labelled]} />);
    await showPart(<ExperimentTable label="None" rows={[plain]} />);
    const headings = (label: string) => within(screen.getByRole("region", { name: label })).queryByText("Labels");
    expect(headings("Some")).not.toBeNull();
    expect(headings("None")).toBeNull();
  });

  it("shows a name of markup as the text that it is", async () => {
    await showPart(
      <ExperimentTable
        label="Experiments"
        rows={[fakeRow({ name: "<img src=x onerror=alert(1)>", labels: { team: "<b>red</b>" } })]}
      />,
    );
    expect(screen.getByRole("link", { name: "<img src=x onerror=alert(1)>" })).toBeDefined();
    expect(screen.getByText("team=<b>red</b>")).toBeDefined();
  });
});
