// Forms for common recipes; the answers become a recipe's text that the user can read and change.
import { useQuery } from "@tanstack/react-query";
import { type SyntheticEvent, useId, useState } from "react";

import { Dialog } from "@/components/Dialog";
import { SelectField, TextField } from "@/components/Field";

import { namesQuery } from "./queries";
import { buildRecipe, type Form, MODEL, SERVICE } from "./recipe";

const KINDS = [
  { value: "model", label: "a model on an engine" },
  { value: "service", label: "a server under load" },
];

export function Forms({ onWrite }: { onWrite: (text: string) => void }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="button" onClick={() => setOpen(true)}>
        Fill in a form
      </button>
      {open && <RecipeForm onClose={() => setOpen(false)} onWrite={onWrite} />}
    </>
  );
}

function RecipeForm({ onClose, onWrite }: { onClose: () => void; onWrite: (text: string) => void }) {
  const [form, setForm] = useState<Form>(MODEL);
  const names = useQuery(namesQuery).data;
  const id = useId();
  const buildOptions = (of: { name: string; about: string }[] | undefined) =>
    (of ?? []).map(({ name, about }) => ({ value: name, label: about ? `${name}: ${about}` : name }));
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    onWrite(buildRecipe(form));
    onClose();
  };
  return (
    <Dialog
      title="A recipe by answers"
      onClose={onClose}
      footer={
        <button type="submit" form={id} className="button primary">
          Write the recipe
        </button>
      }
    >
      <form id={id} className="stack" onSubmit={submit}>
        <SelectField
          label="What is measured"
          value={form.kind}
          options={KINDS}
          onChange={(kind) => setForm(kind === "model" ? MODEL : SERVICE)}
        />
        <TextField label="Name" required value={form.name} onChange={(name) => setForm({ ...form, name })} />
        {form.kind === "model" ? (
          <div className="fields">
            <SelectField
              label="Model"
              value={form.model}
              options={buildOptions(names?.models)}
              onChange={(model) => setForm({ ...form, model })}
            />
            <TextField
              label="Engines"
              required
              value={form.engines}
              help={(names?.engines ?? []).map((one) => one.name).join(", ")}
              onChange={(engines) => setForm({ ...form, engines })}
            />
            <TextField
              label="Unit"
              required
              value={form.unit}
              help="cpu, cuda, …"
              onChange={(unit) => setForm({ ...form, unit })}
            />
            <TextField
              label="Batch sizes"
              required
              value={form.batches}
              help="several are a job each"
              onChange={(batches) => setForm({ ...form, batches })}
            />
            <TextField
              label="Inferences in a run"
              required
              value={form.runs}
              onChange={(runs) => setForm({ ...form, runs })}
            />
            <TextField
              label="Runs"
              required
              value={form.repeats}
              help="fresh processes; five or more"
              onChange={(repeats) => setForm({ ...form, repeats })}
            />
          </div>
        ) : (
          <div className="fields">
            <TextField
              label="Address"
              required
              value={form.endpoint}
              onChange={(endpoint) => setForm({ ...form, endpoint })}
            />
            <SelectField
              label="Speaks"
              value={form.driver}
              options={buildOptions(names?.drivers)}
              onChange={(driver) => setForm({ ...form, driver })}
            />
            <TextField
              label="Users at once"
              required
              value={form.users}
              help="several are a sweep"
              onChange={(users) => setForm({ ...form, users })}
            />
            <TextField
              label="For how long"
              required
              value={form.duration}
              onChange={(duration) => setForm({ ...form, duration })}
            />
            <TextField
              label="Runs"
              required
              value={form.repeats}
              onChange={(repeats) => setForm({ ...form, repeats })}
            />
          </div>
        )}
      </form>
    </Dialog>
  );
}
