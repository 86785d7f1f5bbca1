// The pinned baseline of a series: show, replace or clear it.
import { useQueryClient } from "@tanstack/react-query";
import { type SyntheticEvent, useId, useState } from "react";

import type { History } from "@/api/schema";
import { ConfirmButton, Dialog } from "@/components/Dialog";
import { SelectField, TextField } from "@/components/Field";
import { Card, Facts } from "@/components/layout";
import { DASH, formatValue } from "@/components/number";
import { Failure } from "@/components/states";
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
              label="Forget"
              className="button slim danger"
              title="Forget the baseline?"
              question="The result itself stays."
              yes="Forget it"
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
          None is pinned. A baseline is a result that the newest one is held against; it changes nothing about how
          changes are found.
        </p>
      )}
      {asked && <PinDialog history={history} onClose={close} />}
    </Card>
  );
}

function PinDialog({ history, onClose }: { history: History; onClose: () => void }) {
  const [job, setJob] = useState("");
  const [reason, setReason] = useState("");
  const [error, setError] = useState<unknown>(null);
  const form = useId();
  const quotable = history.points.filter((point) => point.grade !== "void" && history.metric in point.values).reverse();
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    try {
      await setBaseline(history.series.id, job || null, reason);
      onClose();
    } catch (caught) {
      setError(caught);
    }
  };
  return (
    <Dialog
      title="Pin a baseline"
      onClose={onClose}
      footer={
        <button type="submit" form={form} className="button primary">
          Pin it
        </button>
      }
    >
      <form id={form} className="stack" onSubmit={(event) => void submit(event)}>
        <SelectField
          label="Result"
          value={job}
          options={[
            { value: "", label: "the newest that may be quoted" },
            ...quotable.map((point) => ({
              value: point.job_id,
              label: `${formatValue(point.values[history.metric] ?? NaN, history.unit)}, ${formatInstant(point.measured_at)}, ${point.job_id}`,
            })),
          ]}
          onChange={setJob}
        />
        <TextField label="Reason" value={reason} onChange={setReason} placeholder="release 1.4" />
        {error !== null && <Failure error={error} />}
      </form>
    </Dialog>
  );
}
