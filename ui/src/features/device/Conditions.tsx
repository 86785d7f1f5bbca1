// What `prony doctor` says of a device, as its newest result, or the agent when it began, found it.
import type { Condition, DeviceHistory } from "@/api/schema";
import { Badge, type Tone } from "@/components/Badge";
import { EmptyState } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { RelativeTime } from "@/components/time";

const TONES: Record<Condition["status"], Tone> = { block: "bad", warn: "warn", unknown: "quiet", pass: "good" };
const WORDS: Record<Condition["status"], string> = {
  block: "blocks",
  warn: "disturbs",
  unknown: "unknown",
  pass: "fine",
};
const ORDER: readonly Condition["status"][] = ["block", "warn", "unknown", "pass"];

const COLUMNS: readonly Column<Condition>[] = [
  { key: "status", heading: "Status", cell: (one) => <Badge tone={TONES[one.status]}>{WORDS[one.status]}</Badge> },
  { key: "what", heading: "Checked", cell: (one) => <b>{one.title}</b> },
  { key: "value", heading: "Found", cell: (one) => one.value },
  { key: "hint", heading: "What to do", cell: (one) => (one.status === "pass" ? "–" : one.hint || "–") },
];

export function Conditions({ history }: { history: DeviceHistory }) {
  if (history.conditions.length === 0)
    return (
      <EmptyState title="Not checked yet">
        <p>
          An agent checks the machine when it begins, and before each job. <code>prony doctor</code> on the machine
          checks it now.
        </p>
      </EmptyState>
    );
  const rows = [...history.conditions].sort((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status));
  return (
    <>
      <Table rows={rows} columns={COLUMNS} keyOf={(one) => one.code} label="Conditions" />
      <p className="body muted small">
        Checked <RelativeTime at={history.checked_at} />, before the newest result or when the agent began.{" "}
        <code>prony doctor</code> on the machine checks it now.
      </p>
    </>
  );
}
