import { screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";

import { fakeCatalogue, fakeCheck, fakeExample, fakeLot, fakeView } from "../../../tests/fakes/resources";
import { fakeField, fakeForm } from "../../../tests/fakes/forms";
import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();
const DUET = fakeForm({
  name: "duet",
  label: "two variants",
  changes_recipe: true,
  fields: [fakeField("duet.a", { label: "Side a", has_lines: true, value: "threads=1" })],
});

const OTHER = fakeExample({ name: "other", file: "other.yaml", text: "name: other\n" });

beforeEach(() => {
  server.current
    .answer("GET", "/api/v1/recipes/examples", { items: [fakeExample()] })
    .answer("GET", "/api/v1/recipes/names", fakeCatalogue())
    .answer("GET", "/api/v1/recipes/forms", { items: [fakeForm(), DUET] })
    .answer("GET", "/api/v1/recipes/schema", { properties: { name: { type: "string" } } });
});

describe("a recipe that is being written", () => {
  it("is told its jobs, how long they take, who fits, and of the others why not", async () => {
    server.current.answer("POST", "/api/v1/recipes/check", fakeCheck());
    await visit("/run?example=quickstart");
    expect(await screen.findByText("the recipe is valid")).toBeDefined();
    expect(screen.getByText("about 4 min 10 s").title).toBe("the last time");
    const agents = within(screen.getByRole("region", { name: "Agents for onnxruntime, cpu" }));
    expect(agents.getByText("1 of 2 agents fit")).toBeDefined();
    expect(agents.getByText("old-box lacks engine onnxruntime (has openvino)")).toBeDefined();
    expect(server.current.requestsTo("POST", "/api/v1/recipes/check")[0]?.body).toEqual({
      text: fakeExample().text,
      name: "recipe.yaml",
      overrides: [],
    });
    expect(screen.getByRole<HTMLButtonElement>("button", { name: "Submit 2 jobs" }).disabled).toBe(false);
  });

  it("is told its mistakes beside their lines, with the hint, and cannot be submitted", async () => {
    const problems = [
      {
        path: "workload.engin",
        message: "there is no such key",
        hint: "did you mean workload.engine?",
        source: "",
        line: 3,
        column: 3,
      },
    ];
    server.current.answer("POST", "/api/v1/recipes/check", fakeCheck({ problems, jobs: 0, lots: [], planned: [] }));
    await visit("/run?example=quickstart");
    const said = (await screen.findByRole("list", { name: "Problems" })).textContent;
    expect(said).toContain("line 3");
    expect(said).toContain("workload.engin: there is no such key");
    expect(said).toContain("did you mean workload.engine?");
    expect(screen.getByRole<HTMLButtonElement>("button", { name: "Submit" }).disabled).toBe(true);
  });

  it("may wait for an agent that fits, and is told so", async () => {
    const lot = fakeLot({ agents: [] });
    server.current.answer("POST", "/api/v1/recipes/check", fakeCheck({ runnable: false, lots: [lot], expected: null }));
    await visit("/run?example=quickstart");
    expect(await screen.findByText("some jobs fit no agent")).toBeDefined();
    expect(screen.getByText("not known: no agent that fits")).toBeDefined();
  });

  it("is submitted once, and its experiment opens", async () => {
    server.current.answer("POST", "/api/v1/recipes/check", fakeCheck());
    server.current.answer("POST", "/api/v1/experiments", fakeView());
    const { user, address } = await visit("/run?example=quickstart");
    const submit = await screen.findByRole<HTMLButtonElement>("button", { name: "Submit 2 jobs" });
    await vi.waitFor(() => expect(submit.disabled).toBe(false));
    await user.click(submit);
    await vi.waitFor(() => expect(address()).toBe("/experiments/x1"));
    const [asked] = server.current.requestsTo("POST", "/api/v1/experiments");
    expect(asked?.headers.get("Idempotency-Key")).toBeTruthy();
  });

  it("begins with nothing, and says how to begin", async () => {
    await visit("/run");
    expect(await screen.findByRole("heading", { name: "Nothing written yet" })).toBeDefined();
    expect(server.current.requestsTo("POST", "/api/v1/recipes/check")).toHaveLength(0);
  });

  it("can be put together by answers", async () => {
    server.current.answer("POST", "/api/v1/recipes/check", fakeCheck());
    const { user } = await visit("/run");
    await user.click(await screen.findByRole("button", { name: "Fill in a form" }));
    const algorithms = await screen.findByLabelText("Algorithms");
    await user.clear(algorithms);
    await user.type(algorithms, "sha256, md5");
    server.current.answer("POST", "/api/v1/recipes/draft", { text: "name: drafted\n" });
    await user.click(screen.getByRole("button", { name: "Write the recipe" }));
    await vi.waitFor(() => expect(server.current.requestsTo("POST", "/api/v1/recipes/check")).toHaveLength(1));
    expect(server.current.requestsTo("POST", "/api/v1/recipes/draft")[0]?.body).toMatchObject({
      form: "hashing",
      answers: { "workload.algorithm": "sha256, md5", "measure.repeats": "5" },
      text: "",
    });
    expect(server.current.requestsTo("POST", "/api/v1/recipes/check")[0]?.body).toMatchObject({
      text: "name: drafted\n",
    });
  });

  it("goes along with a form that changes it, and a refusal is shown until an answer is changed", async () => {
    server.current.answer("POST", "/api/v1/recipes/check", fakeCheck());
    server.current.refuse("POST", "/api/v1/recipes/draft", {
      status: 422,
      detail: "side a: threads is not PATH=VALUE",
    });
    const { user } = await visit("/run?example=quickstart&form=duet");
    expect(await screen.findByText(/This changes the recipe in the editor/)).toBeDefined();
    await user.click(screen.getByRole("button", { name: "Write the recipe" }));
    expect(await screen.findByText(/is not PATH=VALUE/)).toBeDefined();
    expect(server.current.requestsTo("POST", "/api/v1/recipes/draft")[0]?.body).toMatchObject({
      text: fakeExample().text,
    });
    await user.type(screen.getByLabelText("Side a"), "2");
    expect(screen.queryByText(/is not PATH=VALUE/)).toBeNull();
  });

  it("is replaced by an example with a word, and comes back when that is taken back", async () => {
    server.current.answer("POST", "/api/v1/recipes/check", fakeCheck());
    sessionStorage.setItem("prony.draft", JSON.stringify({ text: "name: mine\n", format: "yaml" }));
    const { user } = await visit("/run?example=quickstart");
    expect(await screen.findByText("Replaced your draft")).toBeDefined();
    await waitForCheckOf(fakeExample().text);
    await user.click(screen.getByRole("button", { name: "Undo" }));
    expect(sessionStorage.getItem("prony.draft")).toContain("name: mine");
    expect(screen.queryByText("Replaced your draft")).toBeNull();
  });

  it("is replaced without a word where nobody had written in it", async () => {
    server.current
      .answer("POST", "/api/v1/recipes/check", fakeCheck())
      .answer("GET", "/api/v1/recipes/examples", { items: [fakeExample(), OTHER] });
    const { user } = await visit("/run?example=quickstart");
    await waitForCheckOf(fakeExample().text);
    await user.selectOptions(screen.getByLabelText("Example"), OTHER.file);
    await waitForCheckOf(OTHER.text);
    expect(screen.queryByText("Replaced your draft")).toBeNull();
  });

  it("is told of before a form replaces it", async () => {
    server.current.answer("POST", "/api/v1/recipes/check", fakeCheck());
    await visit("/run?example=quickstart&form=hashing");
    expect(
      await screen.findByText(/This replaces the recipe in the editor. Ctrl-Z there takes it back./),
    ).toBeDefined();
  });
});

async function waitForCheckOf(text: string): Promise<void> {
  await vi.waitFor(() => {
    const asked = server.current.requestsTo("POST", "/api/v1/recipes/check").at(-1);
    expect(asked?.body).toMatchObject({ text });
  });
}
