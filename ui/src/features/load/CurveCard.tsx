// One load curve: chart, claims (knee, limit, SLO), a table of levels, and evidence for the bottleneck.
import type { Bottleneck, Claim, Curve } from "@/api/schema";
import { SweepChart } from "@/charts/SweepChart";
import { Badge, describeState, type Tone, VerdictBadge } from "@/components/Badge";
import { Card } from "@/components/layout";
import { useMetricTitle } from "@/components/MetricName";
import { formatShare, formatValue } from "@/components/number";
import { Quantity } from "@/components/Quantity";
import { type Column, Table } from "@/components/Table";

type Level = Curve["levels"][number];

const TONES: Record<Claim["state"], Tone> = {
  found: "good",
  "not found": "quiet",
  "cannot tell": "warn",
  refused: "warn",
};

export function CurveCard({ curve }: { curve: Curve }) {
  const claims = [
    ["Knee", curve.knee],
    ["Highest throughput", curve.limit],
    ["Highest load that holds the SLO", curve.slo],
  ] as const;
  return (
    <Card title={curve.title || "Throughput and latency against load"}>
      <div className="stack">
        <div className="claims">
          {claims.map(([name, claim]) => claim && <ClaimCard key={name} name={name} claim={claim} />)}
        </div>
        {curve.levels.length > 1 && <SweepChart curve={curve} />}
        <Table
          rows={curve.levels}
          columns={buildColumns(curve)}
          keyOf={(one) => String(one.load)}
          label="Levels of load"
        />
        <Evidence levels={curve.levels} noun={curve.noun} />
      </div>
    </Card>
  );
}

function ClaimCard({ name, claim }: { name: string; claim: Claim }) {
  return (
    <section className="claim" aria-label={name}>
      <h3>{name}</h3>
      {claim.estimate ? (
        <Quantity of={claim.estimate} big />
      ) : (
        <Badge tone={TONES[claim.state]}>{describeState(claim.state)}</Badge>
      )}
      <p>{claim.text}</p>
    </section>
  );
}

function buildColumns({ noun, levels }: Curve): readonly Column<Level>[] {
  const all: readonly Column<Level>[] = [
    { key: "load", heading: capitalize(noun || "load"), cell: (one) => <b>{one.load}</b>, end: true },
    {
      key: "throughput",
      heading: "Throughput",
      cell: (one) => <Quantity of={one.throughput} grade={one.grade} />,
      end: true,
    },
    { key: "goodput", heading: "Goodput", cell: (one) => <Quantity of={one.goodput} grade={one.grade} />, end: true },
    { key: "p50", heading: "p50", cell: (one) => <Quantity of={one.p50} grade={one.grade} />, end: true },
    { key: "p99", heading: "p99", cell: (one) => <Quantity of={one.p99} grade={one.grade} />, end: true },
    { key: "errors", heading: "Failed", cell: (one) => (one.errors ? formatShare(one.errors.value) : "–"), end: true },
    {
      key: "grade",
      heading: "Verdict",
      cell: (one) => <VerdictBadge grade={one.grade} title={one.excluded || undefined} />,
    },
    { key: "limits", heading: "Limits", cell: (one) => <Limits of={one} /> },
  ];
  // Without limits for each request there is no goodput, and without any limit nothing to hold.
  const isEmpty: Record<string, boolean> = {
    goodput: levels.every((one) => !one.goodput),
    limits: levels.every((one) => one.checks.length === 0),
  };
  return all.filter(({ key }) => !isEmpty[key]);
}

function capitalize(noun: string): string {
  return noun.charAt(0).toUpperCase() + noun.slice(1);
}

function Limits({ of: level }: { of: Level }) {
  const titleOf = useMetricTitle();
  if (level.checks.length === 0) return <span className="muted">–</span>;
  return (
    <span className="row">
      {level.checks.map((check) => (
        <Badge
          key={check.key}
          tone={check.state === "held" ? "good" : check.state === "violated" ? "bad" : "warn"}
          title={check.text}
        >
          {titleOf(check.key)} {describeState(check.state)}
        </Badge>
      ))}
    </span>
  );
}

function nameBottleneck({ where, what }: Bottleneck): string {
  return what ? `${where}: ${what}` : where;
}

function Evidence({ levels, noun }: { levels: readonly Level[]; noun: string }) {
  const told = levels.filter((level) => level.bottleneck);
  if (told.length === 0) return null;
  return (
    <section className="stack" aria-label="What was the bottleneck">
      <h3>What was the bottleneck</h3>
      {told.map(({ load, bottleneck }) =>
        bottleneck ? (
          <details key={load} open={load === told.at(-1)?.load}>
            <summary>
              at {load} {load === 1 ? noun.replace(/s\b/, "") : noun}: <b>{nameBottleneck(bottleneck)}</b>
            </summary>
            <p>{bottleneck.text}</p>
            <ul className="clues">
              {bottleneck.clues.map((clue) => (
                <li key={`${clue.side} ${clue.series}`}>
                  <Badge tone={clue.is_over ? "bad" : "quiet"}>{clue.side}</Badge>{" "}
                  <span className="mono">{clue.series}</span>{" "}
                  {clue.unit === "1" ? formatShare(clue.value) : formatValue(clue.value, clue.unit)}{" "}
                  <span className="muted">{clue.text}</span>
                </li>
              ))}
            </ul>
          </details>
        ) : null,
      )}
    </section>
  );
}
