// Forms for new recipes as the API describes them.
import type { FormField, RecipeForm } from "@/api/schema";

export function fakeField(path: string, over: Partial<FormField> = {}): FormField {
  return {
    path,
    label: path.split(".").at(-1) ?? path,
    value: "",
    help: "",
    default: null,
    takes_several: false,
    is_text: true,
    is_choice: false,
    is_required: true,
    has_lines: false,
    choices: [],
    ...over,
  };
}

export function fakeForm(over: Partial<RecipeForm> = {}): RecipeForm {
  return {
    name: "hashing",
    label: "how fast bytes are hashed",
    about: "",
    changes_recipe: false,
    fields: [
      fakeField("workload.algorithm", { label: "Algorithms", value: "sha256", takes_several: true }),
      fakeField("measure.repeats", { label: "Runs", value: "5", is_text: false }),
    ],
    ...over,
  };
}
