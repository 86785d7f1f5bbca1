// A table with sortable columns that renders only the rows in sight.
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useRef } from "react";

export interface Column<R> {
  key: string;
  heading: ReactNode;
  cell: (row: R) => ReactNode;
  end?: boolean;
  width?: string;
  /** What `onSort` is told; without it this column does not sort. */
  sort?: string;
}

export interface Sorting {
  by: string;
  descending: boolean;
}

/** Rows that are ticked, by their keys; with it each row has a box. */
export interface RowSelection<R> {
  chosen: ReadonlySet<string>;
  onChange: (chosen: ReadonlySet<string>) => void;
  /** What a row is called, for those who hear its box. */
  nameOf: (row: R) => string;
}

interface Props<R> {
  rows: readonly R[];
  columns: readonly Column<R>[];
  keyOf: (row: R) => string;
  label: string;
  rowHeight?: number;
  /** How high the table may become; what is more scrolls inside it. */
  maxHeight?: string;
  sorting?: Sorting | undefined;
  onSort?: ((sorting: Sorting) => void) | undefined;
  onPick?: ((row: R) => void) | undefined;
  selection?: RowSelection<R> | undefined;
  /** Called when the last rows come into sight and there may be more. */
  onEnd?: (() => void) | undefined;
}

// Fewer than this are simply drawn: the browser lays them out better than we do.
const FEW = 60;

export function Table<R>(props: Props<R>) {
  const { rows, keyOf, label, rowHeight = 40, maxHeight = "70vh", onPick, onEnd } = props;
  const columns = props.selection ? [buildTickColumn(props.selection, rows, keyOf), ...props.columns] : props.columns;
  const frame = useRef<HTMLDivElement>(null);
  const isLong = rows.length > FEW;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => rowHeight,
    overscan: 12,
    enabled: isLong,
  });
  const items = virtual.getVirtualItems();
  const last = isLong ? (items.at(-1)?.index ?? 0) : rows.length - 1;
  useEffect(() => {
    if (onEnd && rows.length > 0 && last >= rows.length - 12) onEnd();
  }, [last, rows.length, onEnd]);
  const shown = isLong ? items.map((item) => item.index) : rows.map((_, index) => index);
  const above = isLong ? (items[0]?.start ?? 0) : 0;
  const below = isLong ? virtual.getTotalSize() - (items.at(-1)?.end ?? 0) : 0;
  return (
    <div
      ref={frame}
      className="scroll"
      style={isLong ? { maxHeight } : undefined}
      tabIndex={0}
      role="region"
      aria-label={label}
    >
      <table aria-rowcount={rows.length + 1}>
        <thead className={isLong ? "sticky" : undefined}>
          <tr>
            {columns.map((column) => (
              <Heading key={column.key} column={column} sorting={props.sorting} onSort={props.onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Spacer height={above} />
          {shown.map((index) => {
            const row = rows[index];
            if (row === undefined) return null;
            return (
              <tr
                key={keyOf(row)}
                aria-rowindex={index + 2}
                className={onPick ? "pickable" : undefined}
                onClick={onPick ? (event) => pickRow(event.target, () => onPick(row)) : undefined}
              >
                {columns.map((column) => (
                  <td key={column.key} className={column.end ? "end" : undefined}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
          <Spacer height={below} />
        </tbody>
      </table>
    </div>
  );
}

function buildTickColumn<R>(
  { chosen, onChange, nameOf }: RowSelection<R>,
  rows: readonly R[],
  keyOf: (row: R) => string,
): Column<R> {
  const keys = rows.map(keyOf);
  const isWhole = keys.length > 0 && keys.every((key) => chosen.has(key));
  const toggle = (key: string): void => {
    const next = new Set(chosen);
    if (!next.delete(key)) next.add(key);
    onChange(next);
  };
  return {
    key: "tick",
    width: "34px",
    heading: (
      <input
        type="checkbox"
        aria-label="Choose all"
        checked={isWhole}
        onChange={() => onChange(new Set(isWhole ? [] : keys))}
      />
    ),
    cell: (row) => (
      <input
        type="checkbox"
        aria-label={`Choose ${nameOf(row)}`}
        checked={chosen.has(keyOf(row))}
        onChange={() => toggle(keyOf(row))}
      />
    ),
  };
}

/** A click on a link or a button of a row is that one's own. */
function pickRow(target: EventTarget, act: () => void): void {
  if (target instanceof Element && target.closest("a, button, input, select, label")) return;
  if (document.getSelection()?.type === "Range") return;
  act();
}

function Spacer({ height }: { height: number }) {
  if (height <= 0) return null;
  return (
    <tr aria-hidden="true">
      <td style={{ height, padding: 0, border: 0 }} />
    </tr>
  );
}

function Heading<R>(props: {
  column: Column<R>;
  sorting?: Sorting | undefined;
  onSort?: ((sorting: Sorting) => void) | undefined;
}) {
  const { column, sorting, onSort } = props;
  const key = column.sort;
  const isChosen = key !== undefined && sorting?.by === key;
  const order = isChosen ? (sorting.descending ? "descending" : "ascending") : undefined;
  const style = column.width ? { width: column.width } : undefined;
  if (key === undefined || !onSort)
    return (
      <th scope="col" className={column.end ? "end" : undefined} style={style}>
        {column.heading}
      </th>
    );
  return (
    <th scope="col" className={column.end ? "end" : undefined} aria-sort={order ?? "none"} style={style}>
      <button
        type="button"
        className="sorts"
        onClick={() => onSort({ by: key, descending: isChosen ? !sorting.descending : true })}
      >
        {column.heading}
        <span aria-hidden="true">{order === "descending" ? " ↓" : order === "ascending" ? " ↑" : ""}</span>
      </button>
    </th>
  );
}
