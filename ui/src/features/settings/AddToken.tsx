// The dialog that makes a token and shows its secret once.
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import type { MadeToken, Role } from "@/api/schema";
import { Dialog, FormDialog } from "@/components/Dialog";
import { SelectField, TextField } from "@/components/Field";
import { Secret } from "@/components/Secret";

import { addToken } from "./queries";

const ROLES: readonly { value: Role; label: string }[] = [
  { value: "viewer", label: "viewer: sees everything but tokens and the audit trail" },
  { value: "submitter", label: "submitter: also runs, cancels and deletes" },
  { value: "admin", label: "admin: everything" },
  { value: "agent", label: "agent: only enrols" },
];
const DAY_S = 86_400;
const LASTING = [
  { value: "", label: "until revoked" },
  { value: String(DAY_S / 24), label: "one hour" },
  { value: String(DAY_S), label: "one day" },
  { value: String(30 * DAY_S), label: "30 days" },
  { value: String(365 * DAY_S), label: "one year" },
];

export function AddToken({ onClose }: { onClose: () => void }) {
  const [made, setMade] = useState<MadeToken | null>(null);
  if (!made) return <TokenForm onClose={onClose} onMade={setMade} />;
  return (
    <Dialog
      title={`The token ${made.token.name} was made`}
      onClose={onClose}
      footer={
        <button type="button" className="button primary" onClick={onClose}>
          I have saved it
        </button>
      }
    >
      <Secret secret={made.secret}>Save it now: it is not shown again. The server has only its hash.</Secret>
    </Dialog>
  );
}

function TokenForm({ onClose, onMade }: { onClose: () => void; onMade: (made: MadeToken) => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [once, setOnce] = useState(true);
  const [lasting, setLasting] = useState("");
  const client = useQueryClient();
  const act = async (): Promise<void> => {
    onMade(
      await addToken({ name, role, once: role === "agent" && once, expires_in_s: lasting ? Number(lasting) : null }),
    );
    await client.invalidateQueries({ queryKey: ["tokens"] });
  };
  return (
    <FormDialog title="Make a token" yes="Make it" onClose={onClose} act={act}>
      <TextField label="Name" value={name} required placeholder="nightly" onChange={setName} />
      <SelectField label="Role" value={role} options={ROLES} onChange={(value) => setRole(value as Role)} />
      {role === "agent" && (
        <label className="row">
          <input type="checkbox" checked={once} onChange={(event) => setOnce(event.target.checked)} />
          One-time: it enrols one agent and then stops working
        </label>
      )}
      <SelectField label="Valid" value={lasting} options={LASTING} onChange={setLasting} />
    </FormDialog>
  );
}
