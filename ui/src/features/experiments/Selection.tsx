// What can be done with the experiments that were ticked in the list: compare, matrix, delete.
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { api, readBody } from "@/api/client";
import type { ExperimentRow } from "@/api/schema";
import { ConfirmButton } from "@/components/Dialog";

interface Props {
  rows: readonly ExperimentRow[];
  clear: () => void;
}

export function Selection({ rows, clear }: Props) {
  const client = useQueryClient();
  if (rows.length === 0) return null;
  // The list has the newest first, and a comparison its baseline: the oldest.
  const ids = [...rows].sort((a, b) => a.created_at.localeCompare(b.created_at)).map((row) => row.id);
  const names = rows.map((row) => row.name).join(", ");
  const remove = async (): Promise<void> => {
    try {
      for (const row of rows) await deleteExperiment(row);
      clear();
    } finally {
      await client.invalidateQueries({ queryKey: ["listing"] });
    }
  };
  return (
    <div className="row selection" role="region" aria-label="Chosen experiments">
      <strong role="status">{rows.length} chosen</strong>
      <Link className="button slim" to="/compare" search={{ of: ids.join(",") }}>
        Compare
      </Link>
      <Link className="button slim" to="/matrix" search={{ ids: ids.join(",") }}>
        Matrix
      </Link>
      <ConfirmButton
        label="Delete"
        className="button slim danger"
        title={rows.length === 1 ? "Delete this experiment?" : `Delete ${rows.length} experiments?`}
        question={`${names}: every number, sample and log goes too. Running jobs are stopped. This cannot be undone.`}
        yes={rows.length === 1 ? "Delete it" : `Delete ${rows.length}`}
        act={remove}
      />
      <button type="button" className="button slim quiet" onClick={clear}>
        Clear
      </button>
    </div>
  );
}

async function deleteExperiment({ id, state }: ExperimentRow): Promise<void> {
  const force = state === "running" || state === "pending";
  await readBody(
    api.DELETE("/api/v1/experiments/{experiment_id}", { params: { path: { experiment_id: id }, query: { force } } }),
  );
}
