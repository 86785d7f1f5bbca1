// The dialog that adds a schedule.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { examplesQuery } from "@/api/queries";
import type { NewSchedule } from "@/api/schema";
import { FormDialog } from "@/components/Dialog";
import { Field, SelectField, TextField } from "@/components/Field";
import { showToast } from "@/components/toasts";

import { addSchedule } from "./queries";

const FORMATS = ["yaml", "toml", "json"].map((format) => ({ value: `recipe.${format}`, label: format.toUpperCase() }));
const MISSED = [
  { value: "once", label: "one experiment for all of them" },
  { value: "all", label: "one experiment for each" },
  { value: "skip", label: "nothing" },
];
const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function AddSchedule({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [file, setFile] = useState("recipe.yaml");
  const [name, setName] = useState("");
  const [cron, setCron] = useState("0 3 * * *");
  const [zone, setZone] = useState(HERE);
  const [missed, setMissed] = useState("once");
  const examples = useQuery(examplesQuery());
  const client = useQueryClient();
  const act = async (): Promise<void> => {
    const body: NewSchedule = {
      submission: { text, name: file, overrides: [] },
      name: name || null,
      cron: cron || null,
      zone: zone || null,
      missed: missed as NewSchedule["missed"],
    };
    const made = await addSchedule(body);
    showToast(`${made.name} is active`);
    await client.invalidateQueries({ queryKey: ["schedules"] });
    onClose();
  };
  return (
    <FormDialog title="Add a schedule" yes="Add it" onClose={onClose} act={act}>
      <SelectField
        label="Start with"
        value=""
        options={[
          { value: "", label: "a recipe of your own" },
          ...(examples.data?.items ?? []).map((one) => ({ value: one.name, label: `${one.name}: ${one.summary}` })),
        ]}
        onChange={(chosen) => {
          const example = examples.data?.items.find((one) => one.name === chosen);
          if (!example) return;
          setText(example.text);
          setFile(`recipe.${example.file.split(".").pop() ?? "yaml"}`);
        }}
      />
      <Field label="Recipe" help="Checked as if it were submitted now.">
        {(control) => (
          <textarea
            {...control}
            required
            spellCheck={false}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </Field>
      <div className="fields">
        <SelectField label="Format" value={file} options={FORMATS} onChange={setFile} />
        <TextField label="Name" value={name} placeholder="the recipe's" onChange={setName} />
        <TextField label="When" value={cron} help="minute, hour, day, month, weekday; or @daily" onChange={setCron} />
        <TextField label="Time zone" value={zone} onChange={setZone} />
        <SelectField label="Missed times" value={missed} options={MISSED} onChange={setMissed} />
      </div>
    </FormDialog>
  );
}
