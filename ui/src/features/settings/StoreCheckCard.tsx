// The check of the store: are all samples what was measured? The same as `prony doctor --store`.
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import type { Damage, StoreCheck } from "@/api/schema";
import { Badge } from "@/components/Badge";
import { Card } from "@/components/layout";
import { Failure, Loading } from "@/components/states";
import { type Column, Table } from "@/components/Table";

import { checkStore } from "./queries";

const COLUMNS: readonly Column<Damage>[] = [
  {
    key: "job",
    heading: "Job",
    cell: (one) => (
      <Link to="/experiments/$experimentId" params={{ experimentId: one.experiment_id }} className="mono">
        {one.job_id}
      </Link>
    ),
  },
  { key: "what", heading: "What is wrong", cell: (one) => one.what },
];

export function StoreCheckCard() {
  const check = useMutation({ mutationFn: checkStore });
  return (
    <Card
      title="Stored results"
      actions={
        <button type="button" className="button" disabled={check.isPending} onClick={() => check.mutate()}>
          Check all samples
        </button>
      }
    >
      <div className="stack">
        <p>
          Each sample file is held against the checksum that was stored with it, as{" "}
          <span className="mono">prony doctor --store</span> does. With many results this takes minutes.
        </p>
        {check.isPending && <Loading what="Checking the samples of every result" />}
        {check.error && <Failure error={check.error} onRetry={() => check.mutate()} />}
        {check.data && <Findings check={check.data} />}
      </div>
    </Card>
  );
}

function Findings({ check: { results, damages } }: { check: StoreCheck }) {
  const counted = results === 1 ? "1 result" : `${results} results`;
  if (damages.length === 0)
    return (
      <p role="status">
        <Badge tone="good">intact</Badge>{" "}
        {results === 0 ? "No result is stored yet." : `The samples of ${counted} are intact.`}
      </p>
    );
  return (
    <>
      <p role="status">
        <Badge tone="bad">damaged</Badge> {damages.length} of {counted}. Restore the files from a backup, or run the
        jobs again.
      </p>
      <Table rows={damages} columns={COLUMNS} keyOf={(one) => one.job_id} label="Damaged results" />
    </>
  );
}
