// The comparison page: candidates against a baseline, or the two sides of a duet.
import "./compare.css";

import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";

import type { Comparison } from "@/api/schema";
import { Badge, stateTone } from "@/components/Badge";
import { ExperimentPicker } from "@/components/ExperimentPicker";
import { SelectField } from "@/components/Field";
import { Card, Page } from "@/components/layout";
import { splitNames } from "@/components/search";
import { EmptyState, QueryContent } from "@/components/states";

import { MatchView } from "./MatchView";
import { comparisonQuery } from "./queries";
import { parseShare } from "./strip";
import { Terms } from "./Terms";

export function Compare() {
  const search = useSearch({ from: "/compare" });
  const navigate = useNavigate({ from: "/compare" });
  const comparison = useQuery(comparisonQuery(search));
  const chosen = splitNames(search.of);
  return (
    <Page title="Compare" about="Is one result worse than another, by how much, and how certain is it?">
      <Card>
        <div className="stack">
          <ExperimentPicker
            label="Experiments or jobs"
            first="baseline:"
            chosen={chosen}
            onChange={(ids) =>
              void navigate({ search: (before) => ({ ...before, of: ids.join(",") || undefined, match: undefined }) })
            }
          />
          <Terms />
        </div>
      </Card>
      {chosen.length === 0 ? (
        <EmptyState title="Choose two experiments">
          <p>
            The first is the baseline. A duet needs no second one: its two sides are compared. For single jobs, use
            their ids.
          </p>
        </EmptyState>
      ) : (
        <QueryContent query={comparison} what="Comparing">
          {(found) => <Outcome comparison={found} />}
        </QueryContent>
      )}
    </Page>
  );
}

function Outcome({ comparison }: { comparison: Comparison }) {
  const { match } = useSearch({ from: "/compare" });
  const navigate = useNavigate({ from: "/compare" });
  const threshold = parseShare(comparison.terms.threshold);
  const index = Math.max(
    0,
    comparison.matches.findIndex((one) => matchKey(one.baseline.job_id, one.candidate.job_id) === match),
  );
  const shown = comparison.matches[index];
  const isUnlike = comparison.matches.some((one) => one.differences.some((difference) => !difference.allowed));
  return (
    <>
      <Card>
        <div className="stack">
          <p className="row">
            <Badge tone={stateTone(comparison.conclusion)}>{comparison.conclusion}</Badge>
            {isUnlike && <Badge tone="warn">not comparable, compared anyway</Badge>}
            <strong>{comparison.sentence}</strong>
          </p>
          <Notes of={[...comparison.notes, ...comparison.unmatched]} />
          {comparison.matches.length > 1 && (
            <SelectField
              label={`Of ${comparison.matches.length} pairs of jobs, look at`}
              value={String(index)}
              options={comparison.matches.map((one, place) => ({
                value: String(place),
                label: `${worstConclusion(one)} · ${one.title}`,
              }))}
              onChange={(place) => {
                const one = comparison.matches[Number(place)];
                if (one)
                  void navigate({
                    search: (before) => ({ ...before, match: matchKey(one.baseline.job_id, one.candidate.job_id) }),
                    replace: true,
                  });
              }}
            />
          )}
        </div>
      </Card>
      {shown && <MatchView match={shown} threshold={threshold} />}
    </>
  );
}

const FEW = 2;

function Notes({ of: notes }: { of: readonly string[] }) {
  const lines = notes.map((note) => (
    <p key={note} className="muted">
      {note}
    </p>
  ));
  if (notes.length <= FEW) return <>{lines}</>;
  return (
    <details>
      <summary>{notes.length} remarks on what was compared</summary>
      <div className="stack">{lines}</div>
    </details>
  );
}

function matchKey(baseline: string, candidate: string): string {
  return `${baseline}:${candidate}`;
}

const ORDER = [
  "regression",
  "different",
  "inconclusive",
  "insufficient",
  "improvement",
  "within",
  "equivalent",
] as const;

/** Return the conclusion of a match that a person should look at first. */
function worstConclusion(match: Comparison["matches"][number]): string {
  const found = new Set(match.contrasts.filter((one) => one.role === "headline").map((one) => one.conclusion));
  return ORDER.find((one) => found.has(one)) ?? "insufficient";
}
