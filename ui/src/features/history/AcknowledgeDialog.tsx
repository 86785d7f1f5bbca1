// The dialog that acknowledges a change.
import { type SyntheticEvent, useId, useState } from "react";

import type { Change } from "@/api/schema";
import { Dialog } from "@/components/Dialog";
import { Field } from "@/components/Field";
import { Failure } from "@/components/states";

import { acknowledge } from "./queries";

export function AcknowledgeDialog({ change, onClose }: { change: Change; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const [expected, setExpected] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const form = useId();
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    try {
      await acknowledge(change.id, reason, expected);
      onClose();
    } catch (caught) {
      setError(caught);
    }
  };
  return (
    <Dialog
      title="Acknowledge this change"
      onClose={onClose}
      footer={
        <button type="submit" form={form} className="button primary">
          It is known
        </button>
      }
    >
      <form id={form} className="stack" onSubmit={(event) => void submit(event)}>
        <p>{change.sentence}</p>
        <p className="muted">It is told no more, and what comes next is judged against its level.</p>
        <Field label="Reason">
          {(control) => (
            <input {...control} value={reason} maxLength={1000} onChange={(event) => setReason(event.target.value)} />
          )}
        </Field>
        <label className="row">
          <input type="checkbox" checked={expected} onChange={(event) => setExpected(event.target.checked)} />
          It was meant to be so
        </label>
        {error !== null && <Failure error={error} />}
      </form>
    </Dialog>
  );
}
