// A table of the cost and power of each cell, or the reason why they are unknown.
import type { MatrixCell, MatrixReport, Worth } from "@/api/schema";
import { Card } from "@/components/layout";
import { Quantity } from "@/components/Quantity";
import { type Column, Table } from "@/components/Table";

interface CostRow {
  cell: MatrixCell;
  worth: Worth;
}

const COLUMNS: readonly Column<CostRow>[] = [
  { key: "of", heading: "Configuration", cell: ({ cell }) => `${cell.row} × ${cell.column}` },
  { key: "things", heading: "Of", cell: ({ worth }) => worth.things },
  { key: "price", heading: "Price per hour", cell: ({ worth }) => formatPrice(worth) },
  {
    key: "million",
    heading: "Cost per million",
    end: true,
    cell: ({ worth }) => <Quantity of={worth.per_million} missing="no price" />,
  },
  {
    key: "money",
    heading: "Per unit of money",
    end: true,
    cell: ({ worth }) => <Quantity of={worth.per_money} missing="no price" />,
  },
  {
    key: "power",
    heading: "Power",
    end: true,
    cell: ({ worth }) => <Quantity of={worth.power_w} missing={worth.note} />,
  },
  {
    key: "joule",
    heading: "Per joule",
    end: true,
    cell: ({ worth }) => <Quantity of={worth.per_joule} missing={worth.note} />,
  },
  {
    key: "energy",
    heading: "Energy per item",
    end: true,
    cell: ({ worth }) => <Quantity of={worth.joules_each} missing={worth.note} />,
  },
];

const VALUES: Record<string, (worth: Worth) => unknown> = {
  million: (worth) => worth.per_million,
  money: (worth) => worth.per_money,
  power: (worth) => worth.power_w,
  joule: (worth) => worth.per_joule,
  energy: (worth) => worth.joules_each,
};

export function CostTable({ of: report }: { of: MatrixReport }) {
  const rows = report.cells
    .flatMap((cell) => cell.worths.map((worth) => ({ cell, worth })))
    .filter(({ worth }) => Object.values(VALUES).some((value) => value(worth)));
  const notes = rows.length === 0 ? [] : [...new Set(rows.map(({ worth }) => worth.note).filter(Boolean))];
  // A column that nobody can fill says nothing that the note below does not.
  const columns = COLUMNS.filter(({ key }) => !(key in VALUES) || rows.some(({ worth }) => VALUES[key]?.(worth)));
  return (
    <Card title="Cost and power" flush>
      {rows.length === 0 ? (
        <p className="body muted">
          No price is known, and no energy counter was read. Set a price with <code>cost</code> in the recipe, or with
          the label cost_per_hour of the machine.
        </p>
      ) : (
        <div className="stacked">
          <Table
            rows={rows}
            columns={columns}
            keyOf={({ cell, worth }) => `${cell.row} ${cell.column} ${worth.things}`}
            label="Cost and power"
          />
        </div>
      )}
      {notes.map((note) => (
        <p key={note} className="body muted small">
          {note}
        </p>
      ))}
    </Card>
  );
}

function formatPrice({ price }: Worth) {
  return price ? (
    <span title={price.source}>
      {price.per_hour} {price.currency}
    </span>
  ) : (
    <span className="muted">–</span>
  );
}
