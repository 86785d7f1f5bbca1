// Short forms for new recipes. The server writes the recipe by the rules of the command that a form stands for; the user
// can read and change it.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { namesQuery } from "@/api/queries";
import type { FormField, RecipeForm } from "@/api/schema";
import { Dialog, FormDialog } from "@/components/Dialog";
import { LinesField, SelectField, TextField } from "@/components/Field";
import { QueryContent } from "@/components/states";

import { type Draft, draftRecipe, formsQuery } from "./queries";

const FIRST = "bench";

interface Props {
  /** The recipe in the editor: some forms change it, the others replace it. */
  draft: Draft;
  /** The name of the form that is open; null where none is. */
  chosen: string | null;
  onChoose: (name: string | null) => void;
  onWrite: (text: string) => void;
}

export function Forms({ draft, chosen, onChoose, onWrite }: Props) {
  const forms = useQuery({ ...formsQuery(), enabled: chosen !== null });
  const close = (): void => onChoose(null);
  return (
    <>
      <button type="button" className="button" onClick={() => onChoose(FIRST)}>
        Fill in a form
      </button>
      {chosen !== null &&
        (forms.data === undefined ? (
          <Dialog title="Make a recipe with a form" onClose={close}>
            <QueryContent query={forms} what="Loading the forms">
              {() => null}
            </QueryContent>
          </Dialog>
        ) : (
          <FilledForms forms={forms.data.items} {...{ draft, chosen, onChoose, onWrite }} />
        ))}
    </>
  );
}

function FilledForms({ forms, draft, chosen, onChoose, onWrite }: Props & { forms: readonly RecipeForm[] }) {
  // What was typed, by the form and the path: each form keeps its own.
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({});
  const form = forms.find((one) => one.name === chosen) ?? forms[0];
  if (!form) return null;
  const read = ({ path, value }: FormField): string => typed[`${form.name} ${path}`] ?? value;
  const isWritten = draft.text.trim() !== "";
  const act = async (): Promise<void> => {
    const answers = Object.fromEntries(form.fields.map((field) => [field.path, read(field)]));
    const { text } = await draftRecipe(form, answers, draft);
    onWrite(text);
    onChoose(null);
  };
  return (
    <FormDialog title="Make a recipe with a form" yes="Write the recipe" onClose={() => onChoose(null)} act={act}>
      <SelectField
        label="What is measured"
        value={form.name}
        options={forms.map((one) => ({ value: one.name, label: one.label }))}
        {...(form.about ? { help: form.about } : {})}
        onChange={onChoose}
      />
      <div className="fields">
        {form.fields.map((field) => (
          <Question
            key={field.path}
            field={field}
            value={read(field)}
            onChange={(text) => setTyped({ ...typed, [`${form.name} ${field.path}`]: text })}
          />
        ))}
      </div>
      {isWritten && (
        <p className="muted small">
          {form.changes_recipe ? "This changes" : "This replaces"} the recipe in the editor. Ctrl-Z there takes it back.
        </p>
      )}
    </FormDialog>
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
  const Control = field.has_lines ? LinesField : TextField;
  return (
    <Control
      label={field.label}
      required={field.is_required}
      value={value}
      {...(help ? { help } : {})}
      onChange={onChange}
    />
  );
}
