// Badges for states and verdicts, told apart by word and shape as well as by colour.
import type { ReactNode } from "react";

import type { Grade } from "@/api/schema";

export type Tone = "good" | "bad" | "warn" | "info" | "quiet";

const TONES: Record<string, Tone> = {
  complete: "good",
  valid: "good",
  active: "good",
  idle: "good",
  ok: "good",
  delivered: "good",
  pass: "good",
  improvement: "good",
  equivalent: "good",
  within: "good",
  different: "info",
  inconclusive: "warn",
  running: "info",
  leased: "info",
  starting: "info",
  held: "warn",
  cleared: "good",
  busy: "info",
  cleanup: "info",
  sending: "info",
  partial: "warn",
  suspect: "warn",
  draining: "warn",
  disk_full: "bad",
  suspected: "warn",
  slower_than_expected: "warn",
  failed: "bad",
  void: "bad",
  lost: "bad",
  faulty: "bad",
  regression: "bad",
  fail: "bad",
};
const SHAPES: Record<Tone, ReactNode> = {
  good: <path d="M2 5.2 4.2 7.5 8.2 2.6" fill="none" stroke="currentColor" strokeWidth="1.8" />,
  bad: <path d="M2.4 2.4 7.6 7.6 M7.6 2.4 2.4 7.6" fill="none" stroke="currentColor" strokeWidth="1.8" />,
  warn: <path d="M5 1 9.4 9 H0.6 Z" fill="currentColor" />,
  info: <circle cx="5" cy="5" r="3.6" fill="currentColor" />,
  quiet: <circle cx="5" cy="5" r="3.2" fill="none" stroke="currentColor" strokeWidth="1.6" />,
};

// The API's `cannot tell` is an undecided gate, limit or claim; a job that an agent has leased runs there.
const WORDS: Record<string, string> = { "cannot tell": "undecided", leased: "running" };

/** Say a state in words. */
export function describeState(state: string): string {
  return WORDS[state] ?? state.replaceAll("_", " ");
}

export function stateTone(state: string): Tone {
  return TONES[state] ?? "quiet";
}

export function ToneShape({ tone }: { tone: Tone }) {
  return (
    <svg width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">
      {SHAPES[tone]}
    </svg>
  );
}

export function Badge(props: { tone?: Tone; title?: string | undefined; children: ReactNode }) {
  const { tone = "quiet", title, children } = props;
  return (
    <span className={`badge tone-${tone}`} title={title}>
      <ToneShape tone={tone} />
      {children}
    </span>
  );
}

/** A state of an experiment, a job, an agent or a delivery. */
export function StateBadge({ of: state, title }: { of: string; title?: string | undefined }) {
  return (
    <Badge tone={stateTone(state)} title={title}>
      {describeState(state)}
    </Badge>
  );
}

/** May this number be quoted? */
export function VerdictBadge({ grade, title }: { grade: Grade; title?: string | undefined }) {
  return (
    <Badge tone={stateTone(grade)} title={title}>
      {grade}
    </Badge>
  );
}

/** The verdict where there is no room for its word: beside a number. */
export function GradeMark({ grade }: { grade: Grade }) {
  return (
    <span className={`ink-${stateTone(grade)}`} title={`this number is ${grade}`}>
      <ToneShape tone={stateTone(grade)} /> <span className="unseen">{grade}: </span>
    </span>
  );
}
