// The reasons why numbers are void or suspect, grouped over the jobs that share them.
import type { Entry, Grade } from "@/api/schema";
import { Badge, VerdictBadge } from "@/components/Badge";
import { Card } from "@/components/layout";

interface ReasonGroup {
  grade: Grade;
  /** Each text with the titles of the jobs that it is about. */
  texts: Map<string, string[]>;
}

const ORDER: readonly Grade[] = ["void", "suspect", "valid"];

export function Reasons({ entries }: { entries: readonly Entry[] }) {
  const kinds = groupReasons(entries);
  if (kinds.length === 0) return null;
  return (
    <Card title={kinds.every(({ grade }) => grade === "valid") ? "Notes" : "Warnings about these numbers"}>
      <ul className="reasons">
        {kinds.map((kind) => (
          <li key={[...kind.texts.keys()][0]} className="reason">
            {kind.grade === "valid" ? <Badge tone="quiet">note</Badge> : <VerdictBadge grade={kind.grade} />}
            <ReasonTexts kind={kind} isOne={entries.length === 1} />
          </li>
        ))}
      </ul>
    </Card>
  );
}

function ReasonTexts({ kind, isOne }: { kind: ReasonGroup; isOne: boolean }) {
  const [first, ...others] = [...kind.texts].map(([text, titles]) => (
    <span key={text}>
      {text}{" "}
      {!isOne && <span className="muted small">({titles.length === 1 ? titles[0] : `${titles.length} jobs`})</span>}
    </span>
  ));
  return (
    <div>
      {first}
      {others.length > 0 && (
        <details className="small">
          <summary>{others.length === 1 ? "and one more like it" : `and ${others.length} more like it`}</summary>
          <ul className="stack">
            {others.map((one) => (
              <li key={one.key}>{one}</li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

/** What is found by one rule belongs together, though its numbers differ from job to job. */
export function groupReasons(entries: readonly Entry[]): ReasonGroup[] {
  const kinds = new Map<string, ReasonGroup>();
  for (const { summary } of entries)
    for (const { code, grade, text } of summary.verdict.reasons) {
      const kind = kinds.get(`${grade} ${code}`) ?? { grade, texts: new Map<string, string[]>() };
      kind.texts.set(text, [...(kind.texts.get(text) ?? []), summary.title]);
      kinds.set(`${grade} ${code}`, kind);
    }
  return [...kinds.values()].sort((a, b) => ORDER.indexOf(a.grade) - ORDER.indexOf(b.grade));
}
