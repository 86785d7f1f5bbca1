// The dialog that adds an alarm and shows its secret once.
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import type { Alarm, MadeAlarm, NewAlarm } from "@/api/schema";
import { Dialog, FormDialog } from "@/components/Dialog";
import { Field, SelectField, TextField } from "@/components/Field";
import { Secret } from "@/components/Secret";

import { addAlarm } from "./queries";

const WORDS = ["regression", "suspect", "gate failed", "agent lost", "schedule missed", "experiment failed"];
const SEVERITIES = ["info", "warning", "critical"].map((value) => ({ value, label: value }));

export function AddAlarm({ onClose, known }: { onClose: () => void; known: readonly Alarm[] }) {
  const [made, setMade] = useState<MadeAlarm | null>(null);
  if (made) return <SecretDialog of={made} onClose={onClose} />;
  return <AlarmForm onClose={onClose} onMade={setMade} known={known} />;
}

function AlarmForm({
  onClose,
  onMade,
  known,
}: {
  onClose: () => void;
  onMade: (made: MadeAlarm) => void;
  known: readonly Alarm[];
}) {
  const [name, setName] = useState("");
  const [word, setWord] = useState("regression");
  const [limit, setLimit] = useState("");
  const [severity, setSeverity] = useState("warning");
  const [to, setTo] = useState("");
  const [via, setVia] = useState("");
  const [recipe, setRecipe] = useState("");
  const [labels, setLabels] = useState("");
  const [owner, setOwner] = useState("");
  const [quiet, setQuiet] = useState("10m");
  const [again, setAgain] = useState("24h");
  const client = useQueryClient();
  const act = async (): Promise<void> => {
    const body: NewAlarm = {
      name,
      quiet,
      again,
      when: word || limit,
      severity: severity as NewAlarm["severity"],
      to: to.split(/\s+/).filter(Boolean),
      via: via.split(/[\s,]+/).filter(Boolean),
      recipe: recipe || null,
      labels: parseLabels(labels),
      owner: owner || null,
    };
    onMade(await addAlarm(body));
    await client.invalidateQueries({ queryKey: ["alarms"] });
  };
  const others = known.map((one) => one.name).join(", ");
  return (
    <FormDialog title="Add an alarm" yes="Add it" onClose={onClose} act={act}>
      <div className="fields">
        <TextField label="Name" value={name} required onChange={setName} placeholder="ops" />
        <SelectField label="Severity" value={severity} options={SEVERITIES} onChange={setSeverity} />
        <SelectField
          label="When"
          value={word}
          options={[
            ...WORDS.map((value) => ({ value, label: value })),
            { value: "", label: "a metric crosses a limit" },
          ]}
          onChange={setWord}
        />
        {word === "" && (
          <TextField label="Limit" value={limit} required onChange={setLimit} placeholder="inference_ms.p99 > 20" />
        )}
        <TextField label="Only for the recipe" value={recipe} onChange={setRecipe} placeholder="any" />
        <TextField
          label="Only for the labels"
          value={labels}
          onChange={setLabels}
          placeholder="team=vision room=lab2"
        />
        <TextField label="Only for the owner" value={owner} onChange={setOwner} placeholder="anybody" />
      </div>
      <Field
        label="Addresses to notify"
        help="One per line: webhook+https://… or an address of apprise (mailto://, slack://, …). They are never shown again."
      >
        {(control) => (
          <textarea
            {...control}
            className="few"
            spellCheck={false}
            value={to}
            onChange={(event) => setTo(event.target.value)}
          />
        )}
      </Field>
      <div className="fields">
        <TextField
          label="Also the addresses of"
          value={via}
          onChange={setVia}
          placeholder={others || "names of other alarms"}
        />
        <TextField label="Shortest time between messages" value={quiet} onChange={setQuiet} />
        <TextField label="Repeat after" value={again} onChange={setAgain} />
      </div>
    </FormDialog>
  );
}

/** Parse words of KEY=VALUE into labels; a word without `=` is a label with an empty value. */
function parseLabels(text: string): Record<string, string> {
  const words = text.split(/[\s,]+/).filter(Boolean);
  return Object.fromEntries(words.map((word) => [word.split("=")[0] ?? word, word.split("=").slice(1).join("=")]));
}

function SecretDialog({ of: made, onClose }: { of: MadeAlarm; onClose: () => void }) {
  return (
    <Dialog
      title={`The alarm ${made.alarm.name} was added`}
      onClose={onClose}
      footer={
        <button type="button" className="button primary" onClick={onClose}>
          I have saved it
        </button>
      }
    >
      <Secret secret={made.secret}>
        This secret signs the messages to webhooks. Save it now: it is not shown again.
      </Secret>
    </Dialog>
  );
}
