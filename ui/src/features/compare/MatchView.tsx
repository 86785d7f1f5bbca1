// One pair of compared jobs: metrics, distributions and differences.
import type { Compared, Difference, Match } from "@/api/schema";
import { Badge, VerdictBadge } from "@/components/Badge";
import { Card } from "@/components/layout";
import { ResultLink } from "@/components/ResultLink";

import { Contrasts } from "./Contrasts";
import { DistributionOverlay } from "./DistributionOverlay";

export function MatchView({ match, threshold }: { match: Match; threshold: number }) {
  return (
    <>
      <Card
        flush
        title={match.title}
        actions={
          <>
            {match.interleaved && (
              <Badge tone="info" title="a drift of the machine affects both sides alike">
                ran in turns
              </Badge>
            )}
            <Side of={match.baseline} name="baseline" />
            <Side of={match.candidate} name="candidate" />
          </>
        }
      >
        <Contrasts contrasts={match.contrasts} threshold={threshold} label={`Metrics of ${match.title}`} />
      </Card>
      <DistributionOverlay match={match} />
      <Card title="What differs" flush={match.differences.length > 0}>
        {match.differences.length === 0 ? (
          <p className="muted">No known differences: the same machine, workload, settings and software.</p>
        ) : (
          <Differences of={match.differences} />
        )}
      </Card>
    </>
  );
}

function Side({ of: side, name }: { of: Compared; name: string }) {
  const why = side.verdict.reasons.map((reason) => reason.text).join(" ");
  return (
    <span className="row small">
      {name} <ResultLink of={side} />
      <VerdictBadge grade={side.verdict.grade} title={why} />
    </span>
  );
}

function Differences({ of: differences }: { of: readonly Difference[] }) {
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="What differs between the two">
      <table>
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col">Baseline</th>
            <th scope="col">Candidate</th>
            <th scope="col">May differ</th>
          </tr>
        </thead>
        <tbody>
          {differences.map((one) => (
            <tr key={`${one.kind} ${one.path}`}>
              <th scope="row">
                {one.path} <span className="muted small">{one.kind}</span>
              </th>
              <td className="mono">{one.baseline}</td>
              <td className="mono">{one.candidate}</td>
              <td>{one.allowed ? <Badge tone="quiet">yes</Badge> : <Badge tone="warn">compared anyway</Badge>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
