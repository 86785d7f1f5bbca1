// Forms for common recipes, one for each kind of workload that has one; the answers become a recipe's text that the
// user can read and change.
import { useQuery } from "@tanstack/react-query";
import { type SyntheticEvent, useId, useState } from "react";

import { kindsQuery, namesQuery } from "@/api/queries";
import type { FormField, KindForm } from "@/api/schema";
import { Dialog } from "@/components/Dialog";
import { SelectField, TextField } from "@/components/Field";
import { QueryContent } from "@/components/states";

import { buildRecipe } from "./recipe";

interface FormOfKind {
  kind: string;
  form: KindForm;
}

export function Forms({ onWrite }: { onWrite: (text: string) => void }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="button" onClick={() => setOpen(true)}>
        Fill in a form
      </button>
      {open && <FormDialog onClose={() => setOpen(false)} onWrite={onWrite} />}
    </>
  );
}

function FormDialog({ onClose, onWrite }: { onClose: () => void; onWrite: (text: string) => void }) {
  const kinds = useQuery(kindsQuery());
  const id = useId();
  return (
    <Dialog
      title="Make a recipe with a form"
      onClose={onClose}
      footer={
        <button type="submit" form={id} className="button primary">
          Write the recipe
        </button>
      }
    >
      <QueryContent query={kinds} what="Loading the forms">
        {({ items }) => (
          <RecipeForm
            id={id}
            forms={items.flatMap(({ name, form }) => (form ? [{ kind: name, form }] : []))}
            onWrite={(text) => {
              onWrite(text);
              onClose();
            }}
          />
        )}
      </QueryContent>
    </Dialog>
  );
}

interface RecipeFormProps {
  id: string;
  forms: readonly FormOfKind[];
  onWrite: (text: string) => void;
}

function RecipeForm({ id, forms, onWrite }: RecipeFormProps) {
  const [kind, setKind] = useState(forms[0]?.kind);
  // What was typed, by the kind and the path: each form keeps its own.
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({});
  const chosen = forms.find((one) => one.kind === kind);
  if (!chosen) return <p>No kind of workload that is installed here has a form.</p>;
  const { form } = chosen;
  const read = (path: string, otherwise: string): string => typed[`${chosen.kind} ${path}`] ?? otherwise;
  const write = (path: string, text: string): void => setTyped({ ...typed, [`${chosen.kind} ${path}`]: text });
  const name = read("name", form.name);
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    const answers = form.fields.map((field) => ({ field, text: read(field.path, field.value) }));
    onWrite(buildRecipe(chosen.kind, name, answers));
  };
  return (
    <form id={id} className="stack" onSubmit={submit}>
      <SelectField
        label="What is measured"
        value={chosen.kind}
        options={forms.map((one) => ({ value: one.kind, label: one.form.label }))}
        onChange={setKind}
      />
      <TextField label="Name" required value={name} onChange={(text) => write("name", text)} />
      <div className="fields">
        {form.fields.map((field) => (
          <Question
            key={`${chosen.kind} ${field.path}`}
            field={field}
            value={read(field.path, field.value)}
            onChange={(text) => write(field.path, text)}
          />
        ))}
      </div>
    </form>
  );
}

interface QuestionProps {
  field: FormField;
  value: string;
  onChange: (text: string) => void;
}

function Question({ field, value, onChange }: QuestionProps) {
  const known = useQuery(namesQuery()).data?.by_path[field.path] ?? [];
  const choices = field.choices.length > 0 ? field.choices : known;
  if (field.is_choice) {
    const options = choices.map(({ name, about }) => ({ value: name, label: about ? `${name}: ${about}` : name }));
    const isKnown = options.some((one) => one.value === value);
    return (
      <SelectField
        label={field.label}
        value={value}
        options={isKnown ? options : [{ value, label: value }, ...options]}
        {...(field.help ? { help: field.help } : {})}
        onChange={onChange}
      />
    );
  }
  const help = field.help || choices.map((one) => one.name).join(", ");
  return <TextField label={field.label} required value={value} {...(help ? { help } : {})} onChange={onChange} />;
}
