// Queries of the run page: the schema, the forms and what they write, and the check of a draft.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { api, readBody } from "@/api/client";
import type { DraftedRecipe, ExperimentView, RecipeCheck, RecipeForm } from "@/api/schema";

import type { Format } from "./format";
import type { SchemaNode } from "./schema";

export const schemaQuery = queryOptions({
  queryKey: ["schema"],
  queryFn: async ({ signal }) => (await readBody(api.GET("/api/v1/recipes/schema", { signal }))) as SchemaNode,
  staleTime: Infinity,
});

export interface Draft {
  text: string;
  format: Format;
  /** An example or an earlier recipe in which nobody wrote yet. */
  isUntouched?: true;
}

function buildSubmission({ text, format }: Draft) {
  return { text, name: `recipe.${format}`, overrides: [] };
}

export function formsQuery() {
  return queryOptions({
    queryKey: ["forms"],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/recipes/forms", { signal })),
    staleTime: Infinity,
  });
}

/** The recipe that the answers of a form mean; one that it changes goes along. */
export function draftRecipe(
  form: RecipeForm,
  answers: Record<string, string>,
  { text, format }: Draft,
): Promise<DraftedRecipe> {
  const recipe = { text: form.changes_recipe ? text : "", name: `recipe.${format}` };
  return readBody(api.POST("/api/v1/recipes/draft", { body: { form: form.name, answers, ...recipe } }));
}

/** Depends on the agents too: who comes or goes changes who fits. */
export function checkQuery(draft: Draft) {
  return queryOptions({
    queryKey: ["agents", "check", draft],
    queryFn: ({ signal }): Promise<RecipeCheck> =>
      readBody(api.POST("/api/v1/recipes/check", { body: buildSubmission(draft), signal })),
    placeholderData: keepPreviousData,
    enabled: draft.text.trim() !== "",
  });
}

/** The key of one submission. `crypto.randomUUID` is missing where the page came by plain HTTP from another machine. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function submitDraft(draft: Draft, key: string): Promise<ExperimentView> {
  return readBody(
    api.POST("/api/v1/experiments", { body: buildSubmission(draft), params: { header: { "Idempotency-Key": key } } }),
  );
}
