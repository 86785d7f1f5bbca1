// The result that a branch is held against: that of its base where it forked.
import type { History } from "@/api/schema";
import { Card, Facts } from "@/components/layout";

import { listResultFacts } from "./resultFacts";

export function ForkCard({ history }: { history: History }) {
  const { fork } = history;
  if (fork == null) {
    return (
      <Card title="Fork point">
        <p className="muted">The branch that this one forked from has no valid result.</p>
      </Card>
    );
  }
  return (
    <Card title="Fork point">
      <Facts
        of={[
          ["Forked from", `${fork.base} at ${fork.commit?.slice(0, 12) ?? "an unknown commit"}`],
          ...listResultFacts(history, fork, fork.against),
        ]}
      />
      {fork.note && <p className="muted small">{fork.note}</p>}
    </Card>
  );
}
