// Builds a recipe's text from the answers of a form.
export interface ModelForm {
  kind: "model";
  name: string;
  model: string;
  engines: string;
  unit: string;
  batches: string;
  runs: string;
  repeats: string;
}

export interface ServiceForm {
  kind: "service";
  name: string;
  endpoint: string;
  driver: string;
  users: string;
  duration: string;
  repeats: string;
}

export type Form = ModelForm | ServiceForm;

export const MODEL: ModelForm = {
  kind: "model",
  name: "my-model",
  model: "zoo:mobilenet-v2",
  engines: "onnxruntime",
  unit: "cpu",
  batches: "1",
  runs: "50",
  repeats: "5",
};
export const SERVICE: ServiceForm = {
  kind: "service",
  name: "my-endpoint",
  endpoint: "http://127.0.0.1:8000",
  driver: "openai-chat",
  users: "1, 2, 4, 8",
  duration: "30s",
  repeats: "3",
};

export function buildRecipe(form: Form): string {
  return form.kind === "model" ? buildModelRecipe(form) : buildServiceRecipe(form);
}

function buildModelRecipe(form: ModelForm): string {
  const engines = splitAnswers(form.engines);
  const batches = splitAnswers(form.batches);
  const matrix = [
    ...(engines.length > 1 ? [`  workload.engine: [${engines.map(quoteWord).join(", ")}]`] : []),
    ...(batches.length > 1 ? [`  workload.batch_size: [${batches.join(", ")}]`] : []),
  ];
  return joinLines([
    `name: ${quoteWord(form.name)}`,
    "workload:",
    "  kind: model",
    `  model: ${quoteWord(form.model)}`,
    ...(engines.length === 1 ? [`  engine: ${quoteWord(engines[0] ?? "")}`] : []),
    ...(form.unit && form.unit !== "cpu" ? [`  unit: ${quoteWord(form.unit)}`] : []),
    ...(batches.length === 1 && batches[0] !== "1" ? [`  batch_size: ${batches[0] ?? "1"}`] : []),
    ...(matrix.length > 0 ? ["matrix:", ...matrix] : []),
    "measure:",
    `  runs: ${form.runs}`,
    `  repeats: ${form.repeats}`,
  ]);
}

function buildServiceRecipe(form: ServiceForm): string {
  const users = splitAnswers(form.users);
  return joinLines([
    `name: ${quoteWord(form.name)}`,
    "workload:",
    "  kind: service",
    `  endpoint: ${quoteWord(form.endpoint)}`,
    `  driver: ${quoteWord(form.driver)}`,
    ...(users.length > 1 ? ["matrix:", `  load.closed.concurrency: [${users.join(", ")}]`] : []),
    "load:",
    ...(users.length > 1 ? [] : [`  closed: {concurrency: ${users[0] ?? "1"}}`]),
    `  duration: ${form.duration}`,
    `  repeats: ${form.repeats}`,
  ]);
}

function splitAnswers(answer: string): string[] {
  return answer
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
}

/** YAML reads a plain word as it is; anything else is quoted, so that it stays what was typed. */
function quoteWord(word: string): string {
  return /^[A-Za-z][\w.-]*$/.test(word) && !/^(true|false|null|yes|no|on|off)$/i.test(word)
    ? word
    : JSON.stringify(word);
}

function joinLines(lines: readonly string[]): string {
  return `${lines.join("\n")}\n`;
}
