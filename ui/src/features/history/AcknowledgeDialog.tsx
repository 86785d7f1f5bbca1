// The dialog that acknowledges a change.
import { useState } from "react";

import type { Change } from "@/api/schema";
import { FormDialog } from "@/components/Dialog";
import { Field } from "@/components/Field";

import { acknowledge } from "./queries";

export function AcknowledgeDialog({ change, onClose }: { change: Change; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const [expected, setExpected] = useState(false);
  const act = async (): Promise<void> => {
    await acknowledge(change.id, reason, expected);
    onClose();
  };
  return (
    <FormDialog title="Acknowledge this change" yes="Acknowledge it" onClose={onClose} act={act}>
      <p>{change.sentence}</p>
      <p className="muted">It is no longer reported, and later results are judged against its level.</p>
      <Field label="Reason">
        {(control) => (
          <input {...control} value={reason} maxLength={1000} onChange={(event) => setReason(event.target.value)} />
        )}
      </Field>
      <label className="row">
        <input type="checkbox" checked={expected} onChange={(event) => setExpected(event.target.checked)} />
        This change was expected
      </label>
    </FormDialog>
  );
}
