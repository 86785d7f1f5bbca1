// The pinned baseline of a series: show, replace or clear it.
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import type { History } from "@/api/schema";
import { ConfirmButton, FormDialog } from "@/components/Dialog";
import { SelectField, TextField } from "@/components/Field";
import { Card, Facts } from "@/components/layout";
import { DASH, formatValue } from "@/components/number";
import { formatInstant } from "@/components/time";

import { clearBaseline, setBaseline } from "./queries";
import { listResultFacts } from "./resultFacts";

export function BaselineCard({ history }: { history: History }) {
  const [asked, setAsked] = useState(false);
  const client = useQueryClient();
  const { baseline } = history;
  const refresh = () => client.invalidateQueries({ queryKey: ["series", history.series.id] });
  const close = (): void => {
    setAsked(false);
    void refresh();
  };
  return (
    <Card
      title="Baseline"
      actions={
        <>
          <button type="button" className="button slim" onClick={() => setAsked(true)}>
            {baseline ? "Pin another" : "Pin a result"}
          </button>
          {baseline && (
            <ConfirmButton
              label="Clear"
              className="button slim danger"
              title="Clear the baseline?"
              question="The result itself is kept."
              yes="Clear it"
              act={async () => {
                await clearBaseline(history.series.id);
                await refresh();
              }}
            />
          )}
        </>
      }
    >
      {baseline ? (
        <Facts
          of={[
            ...listResultFacts(history, baseline, history.against_baseline),
            ["Pinned", `${formatInstant(baseline.set_at)}${baseline.who ? ` by ${baseline.who}` : ""}`],
            ["Reason", baseline.reason || DASH],
          ]}
        />
      ) : (
        <p className="muted">
          No baseline is pinned. A baseline is a result to compare the newest one with. It does not affect how changes
          are detected.
        </p>
      )}
      {asked && <PinDialog history={history} onClose={close} />}
    </Card>
  );
}

function PinDialog({ history, onClose }: { history: History; onClose: () => void }) {
  const [job, setJob] = useState("");
  const [reason, setReason] = useState("");
  const quotable = history.points.filter((point) => point.grade !== "void" && history.metric in point.values).reverse();
  const act = async (): Promise<void> => {
    await setBaseline(history.series.id, job || null, reason);
    onClose();
  };
  return (
    <FormDialog title="Pin a baseline" yes="Pin it" onClose={onClose} act={act}>
      <SelectField
        label="Result"
        value={job}
        options={[
          { value: "", label: "the newest that is not void" },
          ...quotable.map((point) => ({
            value: point.job_id,
            label: `${formatValue(point.values[history.metric] ?? NaN, history.unit)}, ${formatInstant(point.measured_at)}, ${point.job_id}`,
          })),
        ]}
        onChange={setJob}
      />
      <TextField label="Reason" value={reason} onChange={setReason} placeholder="release 1.4" />
    </FormDialog>
  );
}
