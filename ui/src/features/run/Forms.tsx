// The common cases as questions; their answers become a recipe's text, to be read and changed.
import { useQuery } from "@tanstack/react-query";
import { type SyntheticEvent, useId, useState } from "react";

import { Dialog } from "@/components/Dialog";
import { Choice, Word } from "@/components/Field";

import { namesQuery } from "./queries";
import { type Form, MODEL, recipeOf, SERVICE } from "./recipe";

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
      {open && <Questions onClose={() => setOpen(false)} onWrite={onWrite} />}
    </>
  );
}

function Questions({ onClose, onWrite }: { onClose: () => void; onWrite: (text: string) => void }) {
  const [form, setForm] = useState<Form>(MODEL);
  const names = useQuery(namesQuery).data;
  const id = useId();
  const options = (of: { name: string; about: string }[] | undefined) => (of ?? []).map(({ name, about }) => ({ value: name, label: about ? `${name}: ${about}` : name }));
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    onWrite(recipeOf(form));
    onClose();
  };
  return (
    <Dialog title="A recipe by answers" onClose={onClose} footer={<button type="submit" form={id} className="button primary">Write the recipe</button>}>
      <form id={id} className="stack" onSubmit={submit}>
        <Choice label="What is measured" value={form.kind} options={KINDS} onChange={(kind) => setForm(kind === "model" ? MODEL : SERVICE)} />
        <Word label="Name" required value={form.name} onChange={(name) => setForm({ ...form, name })} />
        {form.kind === "model" ? (
          <div className="fields">
            <Choice label="Model" value={form.model} options={options(names?.models)} onChange={(model) => setForm({ ...form, model })} />
            <Word label="Engines" required value={form.engines} help={(names?.engines ?? []).map((one) => one.name).join(", ")} onChange={(engines) => setForm({ ...form, engines })} />
            <Word label="Unit" required value={form.unit} help="cpu, cuda, …" onChange={(unit) => setForm({ ...form, unit })} />
            <Word label="Batch sizes" required value={form.batches} help="several are a job each" onChange={(batches) => setForm({ ...form, batches })} />
            <Word label="Inferences in a run" required value={form.runs} onChange={(runs) => setForm({ ...form, runs })} />
            <Word label="Runs" required value={form.repeats} help="fresh processes; five or more" onChange={(repeats) => setForm({ ...form, repeats })} />
          </div>
        ) : (
          <div className="fields">
            <Word label="Address" required value={form.endpoint} onChange={(endpoint) => setForm({ ...form, endpoint })} />
            <Choice label="Speaks" value={form.driver} options={options(names?.drivers)} onChange={(driver) => setForm({ ...form, driver })} />
            <Word label="Users at once" required value={form.users} help="several are a sweep" onChange={(users) => setForm({ ...form, users })} />
            <Word label="For how long" required value={form.duration} onChange={(duration) => setForm({ ...form, duration })} />
            <Word label="Runs" required value={form.repeats} onChange={(repeats) => setForm({ ...form, repeats })} />
          </div>
        )}
      </form>
    </Dialog>
  );
}
