// The outcome of the recipe's gates, and a field to try other gates on the same numbers.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import type { GateOutcome } from "@/api/schema";
import { Badge, describeState } from "@/components/Badge";
import { DeferredTextField } from "@/components/Field";
import { Card } from "@/components/layout";
import { Failure, Loading } from "@/components/states";

import { gatesQuery } from "./queries";

const TONES = { passed: "good", failed: "bad", "cannot tell": "warn" } as const;

interface Props {
  experimentId: string;
  outcomes: readonly GateOutcome[];
  /** A number that there is, to show how a gate is written. */
  metric?: string | undefined;
}

export function Gates({ experimentId, outcomes, metric = "throughput_per_s" }: Props) {
  const [gate, setGate] = useState("");
  const [strict, setStrict] = useState(false);
  const isAsked = gate !== "" || strict;
  const tried = useQuery({ ...gatesQuery(experimentId, { gate, strict }), enabled: isAsked });
  return (
    <Card title="Gates">
      <div className="stack">
        {!isAsked || tried.data ? (
          <Outcomes of={isAsked ? (tried.data?.outcomes ?? []) : outcomes} />
        ) : tried.error ? (
          <Failure error={tried.error} />
        ) : (
          <Loading />
        )}
        <div className="fields">
          <DeferredTextField
            label="Try more gates on these results"
            value={gate}
            placeholder={`${metric} <= 20; …`}
            onChange={setGate}
          />
          <label className="row tick">
            <input type="checkbox" checked={strict} onChange={(event) => setStrict(event.target.checked)} />
            Fail undecided gates too
          </label>
        </div>
      </div>
    </Card>
  );
}

function Outcomes({ of: outcomes }: { of: readonly GateOutcome[] }) {
  if (outcomes.length === 0) return <p className="muted">This recipe has no gates.</p>;
  return (
    <ul className="stack">
      {outcomes.map((one) => (
        <li key={`${one.gate} ${one.job_id}`} className="row">
          <Badge tone={TONES[one.state]}>{describeState(one.state)}</Badge>
          <code>{one.gate}</code>
          <span>{one.text}</span>
        </li>
      ))}
    </ul>
  );
}
