// The audit trail: who did what on this server, newest first.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import type { AuditEntry } from "@/api/schema";
import { Card } from "@/components/layout";
import { EmptyState, Failure, Loading } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { formatInstant } from "@/components/time";

import { auditQuery } from "./queries";

const COLUMNS: readonly Column<AuditEntry>[] = [
  { key: "at", heading: "When", cell: (one) => formatInstant(one.at) },
  { key: "who", heading: "Who", cell: (one) => one.who },
  { key: "role", heading: "Role", cell: (one) => one.role },
  { key: "action", heading: "Action", cell: (one) => <span className="mono">{one.action}</span> },
  { key: "target", heading: "Object", cell: (one) => <span className="mono">{one.target}</span> },
  { key: "address", heading: "Address", cell: (one) => one.address },
  { key: "status", heading: "Status", end: true, cell: (one) => one.status },
];

export function AuditTrail() {
  const trail = useInfiniteQuery(auditQuery());
  const rows = useMemo(() => trail.data?.pages.flatMap((page) => page.items) ?? [], [trail.data]);
  if (trail.error) return <Failure error={trail.error} onRetry={() => void trail.refetch()} />;
  if (trail.data === undefined) return <Loading />;
  return (
    <Card title="Audit trail" flush>
      {rows.length === 0 ? (
        <EmptyState title="Nothing was changed yet" />
      ) : (
        <Table
          rows={rows}
          columns={COLUMNS}
          keyOf={(one) => String(one.id)}
          label="Audit trail"
          onEnd={trail.hasNextPage && !trail.isFetchingNextPage ? () => void trail.fetchNextPage() : undefined}
        />
      )}
    </Card>
  );
}
