// The run page: choose or write a recipe, see the server's check while typing, and submit it.
import "./run.css";

import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useMemo, useState } from "react";

import { api, readBody } from "@/api/client";
import { loadPart } from "@/api/loadPart";
import { examplesQuery, namesQuery } from "@/api/queries";
import { SelectField } from "@/components/Field";
import { Card, Page } from "@/components/layout";
import { Failure, Loading } from "@/components/states";
import { showToast, showToastWithUndo } from "@/components/toasts";

import type { Names } from "./assist";
import { detectFormat, type Format, FORMATS } from "./format";
import { Forms } from "./Forms";
import { Preview } from "./Preview";
import { checkQuery, type Draft, newKey, schemaQuery, submitDraft } from "./queries";

const Editor = lazy(() => loadPart(() => import("./Editor")).then(({ Editor: found }) => ({ default: found })));
const route = getRouteApi("/run");
const PAUSE_MS = 350;
const DRAFT_KEY = "prony.draft";

export function Run() {
  const { example, from, form } = route.useSearch();
  const navigate = route.useNavigate();
  const [draft, setDraft] = useDraft(useInitialDraft(example, from));
  const settled = useDebouncedDraft(draft);
  const check = useQuery(checkQuery(settled));
  const schema = useQuery(schemaQuery);
  const names = useNames();
  const [busy, setBusy] = useState(false);
  const write = (text: string): void =>
    setDraft((now) =>
      // The editor tells also of what it was given.
      now.text === text ? now : { text, format: isPasted(now.text, text) ? detectFormat(text) : now.format },
    );
  const isCurrent = settled === draft && !check.isFetching;
  const submit = async (): Promise<void> => {
    setBusy(true);
    try {
      const { experiment } = await submitDraft(draft, newKey());
      sessionStorage.removeItem(DRAFT_KEY);
      await navigate({ to: "/experiments/$experimentId", params: { experimentId: experiment.id } });
    } catch (error) {
      showToast(error instanceof Error ? error.message : String(error), true);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Page
      title="Run"
      about="Choose an example, write a recipe, or paste one from another program. It is checked while you type."
    >
      <div className="bench">
        <Card
          title="Recipe"
          flush
          actions={
            <>
              <Examples chosen={example} onChoose={(name) => void navigate({ search: { example: name } })} />
              <Forms
                draft={draft}
                chosen={form ?? null}
                onChoose={(name) =>
                  void navigate({ search: (now) => ({ ...now, form: name ?? undefined }), replace: true })
                }
                onWrite={(text) => setDraft({ text, format: "yaml" })}
              />
              <SelectField
                label="Format"
                value={draft.format}
                options={FORMATS.map((one) => ({ value: one, label: one.toUpperCase() }))}
                onChange={(format) => setDraft({ ...draft, format: format as Format })}
              />
            </>
          }
        >
          <Suspense fallback={<Loading what="Loading the editor" />}>
            <Editor
              text={draft.text}
              format={draft.format}
              schema={schema.data ?? null}
              names={names}
              problems={check.data?.problems ?? []}
              onChange={write}
            />
          </Suspense>
        </Card>
        <div className="stack">
          {check.error ? (
            <Failure error={check.error} />
          ) : (
            <Preview check={check.data} isEmpty={draft.text.trim() === ""} />
          )}
          <button
            type="button"
            className="button primary"
            disabled={busy || !isCurrent || !check.data || check.data.problems.length > 0}
            onClick={() => void submit()}
          >
            {busy
              ? "Submitting …"
              : check.data && check.data.jobs > 0
                ? `Submit ${check.data.jobs} job${check.data.jobs === 1 ? "" : "s"}`
                : "Submit"}
          </button>
        </div>
      </div>
    </Page>
  );
}

function Examples({ chosen, onChoose }: { chosen: string | undefined; onChoose: (name: string) => void }) {
  const examples = useQuery(examplesQuery());
  const options = (examples.data?.items ?? []).map((one) => ({
    value: one.file,
    label: `${one.file}: ${one.summary}`,
  }));
  return (
    <SelectField
      label="Example"
      value={chosen ?? ""}
      options={[{ value: "", label: "choose one" }, ...options]}
      onChange={(name) => name && onChoose(name)}
    />
  );
}

/** What the address asks to begin with, when it is there. */
function useInitialDraft(example: string | undefined, from: string | undefined): { key: string; draft: Draft } | null {
  const examples = useQuery({ ...examplesQuery(), enabled: example !== undefined });
  const earlier = useQuery({
    queryKey: ["experiment", from ?? "", "recipe"],
    queryFn: ({ signal }) =>
      readBody(
        api.GET("/api/v1/experiments/{experiment_id}", { params: { path: { experiment_id: from ?? "" } }, signal }),
      ),
    enabled: from !== undefined,
  });
  if (from !== undefined) {
    const text = earlier.data?.experiment.recipe_text;
    return text ? { key: `from ${from}`, draft: buildDraft(text) } : null;
  }
  const found = examples.data?.items.find((one) => example === one.file || example === one.name);
  return found ? { key: `example ${found.file}`, draft: buildDraft(found.text) } : null;
}

function buildDraft(text: string): Draft {
  return { text, format: detectFormat(text), isUntouched: true };
}

/** Did somebody write what is about to be replaced? */
function isOwnWork(draft: Draft, next: Draft): boolean {
  return !draft.isUntouched && draft.text.trim() !== "" && draft.text !== next.text;
}

/** What is typed, after what the address asks to begin with; what was typed before can be taken back. */
function useDraft(begin: { key: string; draft: Draft } | null) {
  const [draft, setDraft] = useState<Draft>(readDraft);
  const [begun, setBegun] = useState<string | null>(null);
  const [replaced, setReplaced] = useState<Draft | null>(null);
  // Another address is another beginning; what is typed after it stays.
  if (begin && begin.key !== begun) {
    setBegun(begin.key);
    setReplaced(isOwnWork(draft, begin.draft) ? draft : null);
    setDraft(begin.draft);
  }
  useEffect(() => {
    if (!replaced) return;
    showToastWithUndo("Replaced your draft", () => {
      keepDraft(replaced); // for when this page is shown again, if it is not now
      setDraft(replaced);
    });
  }, [replaced]);
  useEffect(() => keepDraft(draft), [draft]);
  return [draft, setDraft] as const;
}

function useNames(): Names {
  const found = useQuery(namesQuery()).data?.by_path;
  return useMemo(
    () =>
      Object.fromEntries(
        Object.entries(found ?? {}).map(([path, names]) => [path, names.map((one) => ({ ...one, detail: "" }))]),
      ),
    [found],
  );
}

/** The draft as it was when nobody had typed for a moment. */
function useDebouncedDraft(draft: Draft): Draft {
  const [settled, setSettled] = useState(draft);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(draft), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [draft]);
  return settled;
}

/** Was a whole text pasted, rather than a letter typed? */
function isPasted(before: string, after: string): boolean {
  return before.trim() === "" || Math.abs(after.length - before.length) > 40;
}

function keepDraft(draft: Draft): void {
  sessionStorage.setItem(DRAFT_KEY, JSON.stringify(draft));
}

function readDraft(): Draft {
  try {
    const found = JSON.parse(sessionStorage.getItem(DRAFT_KEY) ?? "null") as Draft | null;
    if (found && typeof found.text === "string" && FORMATS.includes(found.format)) return found;
  } catch {
    // Not ours: begin with nothing.
  }
  return { text: "", format: "yaml" };
}
