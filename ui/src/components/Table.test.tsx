import { render, screen, within } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";

import { type Column, type Sorting, Table } from "./Table";

interface Row {
  id: string;
  value: number;
}

const COLUMNS: readonly Column<Row>[] = [
  { key: "name", heading: "Name", cell: (row) => <a href={`#${row.id}`}>{row.id}</a> },
  { key: "value", heading: "Value", sort: "value", end: true, cell: (row) => row.value },
];
const ROWS: readonly Row[] = [
  { id: "a", value: 1 },
  { id: "b", value: 2 },
];

function renderTable(over: Partial<Parameters<typeof Table<Row>>[0]> = {}) {
  return <Table rows={ROWS} columns={COLUMNS} keyOf={(row) => row.id} label="Numbers" {...over} />;
}

describe("a table", () => {
  it("has a name, headings, and a row for each", () => {
    render(renderTable());
    expect(screen.getByRole("region", { name: "Numbers" }).tabIndex).toBe(0);
    expect(screen.getAllByRole("columnheader").map((one) => one.textContent)).toEqual(["Name", "Value"]);
    expect(screen.getAllByRole("row")).toHaveLength(3);
  });

  it("sorts by a heading: down first, then up, and says which way it stands", async () => {
    const onSort = vi.fn<(sorting: Sorting) => void>();
    const { rerender } = render(renderTable({ onSort }));
    const findHeading = (): HTMLElement => screen.getByRole("columnheader", { name: /Value/ });
    expect(findHeading().getAttribute("aria-sort")).toBe("none");
    await userEvent.click(within(findHeading()).getByRole("button"));
    expect(onSort).toHaveBeenLastCalledWith({ by: "value", descending: true });
    rerender(renderTable({ onSort, sorting: { by: "value", descending: true } }));
    expect(findHeading().getAttribute("aria-sort")).toBe("descending");
    await userEvent.click(within(findHeading()).getByRole("button"));
    expect(onSort).toHaveBeenLastCalledWith({ by: "value", descending: false });
  });

  it("sorts by the keyboard, and only where it may", async () => {
    const onSort = vi.fn<(sorting: Sorting) => void>();
    render(renderTable({ onSort }));
    expect(within(screen.getByRole("columnheader", { name: "Name" })).queryByRole("button")).toBeNull();
    await userEvent.tab();
    await userEvent.tab();
    await userEvent.keyboard("{Enter}");
    expect(onSort).toHaveBeenCalledOnce();
  });

  it("takes a click on a row as a choice, but one on a link as the link's own", async () => {
    const onPick = vi.fn<(row: Row) => void>();
    render(renderTable({ onPick }));
    await userEvent.click(screen.getByRole("cell", { name: "2" }));
    expect(onPick).toHaveBeenCalledExactlyOnceWith(ROWS[1]);
    await userEvent.click(screen.getByRole("link", { name: "a" }));
    expect(onPick).toHaveBeenCalledOnce();
  });

  it("asks for more when its end is in sight, and not where there is nothing", () => {
    const onEnd = vi.fn();
    const { rerender } = render(renderTable({ rows: [], onEnd }));
    expect(screen.getAllByRole("row")).toHaveLength(1);
    expect(onEnd).not.toHaveBeenCalled();
    rerender(renderTable({ onEnd }));
    expect(onEnd).toHaveBeenCalledOnce();
  });

  it("draws of thousands only those in sight, and tells how many there are", () => {
    const rows = Array.from({ length: 10_000 }, (_, index) => ({ id: `r${index}`, value: index }));
    render(renderTable({ rows }));
    expect(screen.getAllByRole("row").length).toBeLessThan(200);
    expect(screen.getByRole("table").getAttribute("aria-rowcount")).toBe("10001");
  });
});
