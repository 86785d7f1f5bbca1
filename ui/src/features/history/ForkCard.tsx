// The result that a branch is held against: that of its base where it forked.
import { Link } from "@tanstack/react-router";

import type { History } from "@/api/schema";
import { Card, Facts } from "@/components/layout";
import { DASH, formatValue } from "@/components/number";

import { formatChangeSize } from "./tones";

export function ForkCard({ history }: { history: History }) {
  const { fork } = history;
  if (fork == null) {
    return (
      <Card title="Fork point">
        <p className="muted">The branch that this one forked from has no result that may be quoted.</p>
      </Card>
    );
  }
  return (
    <Card title="Fork point">
      <Facts
        of={[
          ["Forked from", `${fork.base} at ${fork.commit?.slice(0, 12) ?? "an unknown commit"}`],
          [
            "Result",
            <Link
              key="of"
              to="/experiments/$experimentId"
              params={{ experimentId: fork.experiment_id }}
              className="mono"
            >
              {fork.job_id}
            </Link>,
          ],
          ["Value", fork.value == null ? DASH : formatValue(fork.value, history.unit)],
          ["Newest against it", fork.against == null ? DASH : formatChangeSize(fork.against)],
        ]}
      />
      {fork.note && <p className="muted small">{fork.note}</p>}
    </Card>
  );
}
