// The recipe editor. It lives in a shadow root, so that the page's policy need not allow its styles.
import { closeBrackets, closeBracketsKeymap, completionKeymap, completionStatus } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, indentOnInput, indentUnit, StreamLanguage } from "@codemirror/language";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension, Prec } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { useEffect, useRef } from "react";

import type { RecipeProblem } from "@/api/schema";

import { createAssistance, type Names, SYNTAX } from "./assist";
import type { Format } from "./format";
import { editorTheme } from "./editorTheme";
import { markProblems } from "./problems";
import type { SchemaNode } from "./schema";

interface Props {
  text: string;
  format: Format;
  schema: SchemaNode | null;
  names: Names;
  problems: readonly RecipeProblem[];
  onChange: (text: string) => void;
}

const LANGUAGES: Record<Format, () => Extension> = {
  yaml: () => yaml(),
  json: () => json(),
  toml: () => StreamLanguage.define(toml),
};

const HELP = "Tab indents. To leave the editor, press Escape, then Tab.";
const MODIFIERS = ["Shift", "Control", "Alt", "Meta"];

// Asked for again, an open list would be searched anew, and a click on it meanwhile would be lost.
const keepOpenList: Extension = Prec.highest(
  keymap.of([{ key: "Ctrl-Space", run: (view) => completionStatus(view.state) === "active" }]),
);

/** Escape gives Tab back to the page, for as long as people need, until they write again or are elsewhere. */
const leaveByEscape: Extension = [
  Prec.lowest(
    keymap.of([
      {
        key: "Escape",
        run: (view) => {
          view.setTabFocusMode(true);
          return false;
        },
      },
    ]),
  ),
  EditorView.domEventObservers({
    keydown: (event, view) => {
      if (!["Escape", "Tab", ...MODIFIERS].includes(event.key)) view.setTabFocusMode(false);
    },
    blur: (_event, view) => view.setTabFocusMode(false),
  }),
];

export function Editor({ text, format, schema, names, problems, onChange }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const parts = useRef({ language: new Compartment(), help: new Compartment() });
  const changed = useRef(onChange);
  const first = useRef(text);
  // What was written here and has not come back yet: when it does, more may have been written.
  const written = useRef(new Set<string>());
  useEffect(() => {
    changed.current = onChange;
  }, [onChange]);

  useEffect(() => {
    if (!host.current) return;
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    const { language, help } = parts.current;
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: first.current,
        extensions: [
          lineNumbers(),
          EditorView.lineWrapping,
          highlightActiveLine(),
          highlightActiveLineGutter(),
          drawSelection(),
          history(),
          bracketMatching(),
          closeBrackets(),
          indentOnInput(),
          indentUnit.of("  "),
          lintGutter(),
          keepOpenList,
          keymap.of([
            ...closeBracketsKeymap,
            ...completionKeymap,
            ...lintKeymap,
            ...searchKeymap,
            ...historyKeymap,
            ...defaultKeymap,
            indentWithTab,
          ]),
          leaveByEscape,
          language.of([]),
          help.of([]),
          editorTheme,
          EditorView.contentAttributes.of({
            "aria-label": "Recipe",
            "aria-multiline": "true",
            "aria-description": HELP,
          }),
          EditorView.updateListener.of((update) => {
            if (!update.docChanged) return;
            const now = update.state.doc.toString();
            written.current.add(now);
            changed.current(now);
          }),
        ],
      }),
    });
    // What scrolls can be reached by the keyboard, also where its text is not being written.
    made.scrollDOM.tabIndex = 0;
    view.current = made;
    return () => {
      made.destroy();
      view.current = null;
    };
  }, []);

  useEffect(() => {
    const { language, help } = parts.current;
    const helped = schema && format !== "toml" ? createAssistance(schema, names, SYNTAX[format]) : [];
    view.current?.dispatch({ effects: [language.reconfigure(LANGUAGES[format]()), help.reconfigure(helped)] });
  }, [format, schema, names]);

  useEffect(() => {
    const made = view.current;
    if (!made) return;
    const now = made.state.doc.toString();
    const isOwn = written.current.has(text);
    if (text === now) written.current.clear();
    // Another text from outside: an example, or what the form wrote.
    else if (!isOwn) made.dispatch({ changes: { from: 0, to: made.state.doc.length, insert: text } });
  }, [text]);

  useEffect(() => {
    const made = view.current;
    if (made) made.dispatch(setDiagnostics(made.state, buildDiagnostics(made.state.doc.toString(), problems)));
  }, [problems, text]);

  return (
    <>
      <div ref={host} className="editor" />
      <p className="editor-help muted small">{HELP} Ctrl-Space completes.</p>
    </>
  );
}

function buildDiagnostics(text: string, problems: readonly RecipeProblem[]): Diagnostic[] {
  return markProblems(text, problems).map(({ from, to, message, fix }) => ({
    from,
    to,
    message,
    severity: "error",
    ...(fix === null
      ? {}
      : {
          actions: [
            {
              name: `Write ${fix}`,
              apply: (view: EditorView, at: number, end: number) =>
                view.dispatch({ changes: { from: at, to: end, insert: fix } }),
            },
          ],
        }),
  }));
}
