// The server's check of a recipe: its mistakes, or its jobs, the agents that fit and the expected time.
import { Link } from "@tanstack/react-router";

import type { LotFit, RecipeCheck } from "@/api/schema";
import { Badge, StateBadge } from "@/components/Badge";
import { Card, Facts } from "@/components/layout";
import { EmptyState, Loading } from "@/components/states";
import { formatDuration } from "@/components/time";

const MOST_PLANNED = 12;

export function Preview({ check, isEmpty }: { check: RecipeCheck | undefined; isEmpty: boolean }) {
  if (isEmpty)
    return (
      <Card title="Preview">
        <EmptyState title="Nothing written yet">
          <p>
            Choose an example above, fill in the form, or begin to type: <span className="mono">name:</span> and{" "}
            <span className="mono">workload:</span> come first. Ctrl-Space completes.
          </p>
        </EmptyState>
      </Card>
    );
  if (check === undefined)
    return (
      <Card title="Preview">
        <Loading what="The server checks the recipe" />
      </Card>
    );
  if (check.problems.length > 0) return <Problems check={check} />;
  return (
    <Card title="Preview" actions={<Badge tone="good">the recipe is valid</Badge>}>
      <div className="stack">
        {check.dialect !== "" && (
          <p>
            Read as a recipe of <b>{check.dialect}</b>.
          </p>
        )}
        {check.notes.length > 0 && (
          <ul className="notes">
            {check.notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        )}
        <Facts
          of={[
            ["Name", check.name],
            ["Kind", check.kind],
            ["Jobs", check.jobs],
            ["Duration", <ExpectedTime key="duration" of={check.expected} />],
          ]}
        />
        <PlannedJobs check={check} />
        {check.lots.map((lot, index) => (
          <FittingAgents key={index} lot={lot} />
        ))}
        {!check.runnable && (
          <p role="status">
            <Badge tone="warn">some jobs fit no agent</Badge> They wait until an agent that fits is connected.{" "}
            <Link to="/fleet">See the fleet</Link>
          </p>
        )}
      </div>
    </Card>
  );
}

function Problems({ check }: { check: RecipeCheck }) {
  return (
    <Card
      title="Problems"
      actions={
        <Badge tone="bad">{check.problems.length === 1 ? "1 problem" : `${check.problems.length} problems`}</Badge>
      }
    >
      <ul className="problems" aria-label="Problems">
        {check.problems.map((problem, index) => (
          <li key={index}>
            <b className="mono">{problem.line == null ? "recipe" : `line ${problem.line}`}</b>
            <span>
              {problem.path !== "" && <span className="mono">{problem.path}: </span>}
              {problem.message}
              {problem.hint !== "" && <span className="muted"> {problem.hint}</span>}
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function ExpectedTime({ of: expected }: { of: RecipeCheck["expected"] }) {
  if (expected == null) return <span className="muted">not known: no agent that fits</span>;
  if (expected.seconds == null) return <span className="muted">not known: {expected.basis}</span>;
  return <span title={expected.basis}>about {formatDuration(expected.seconds)}</span>;
}

function PlannedJobs({ check }: { check: RecipeCheck }) {
  if (check.jobs < 2) return null;
  const more = check.jobs - Math.min(check.planned.length, MOST_PLANNED);
  return (
    <details>
      <summary>The jobs</summary>
      <ul className="planned mono">
        {check.planned.slice(0, MOST_PLANNED).map((one) => (
          <li key={one.title}>{one.title}</li>
        ))}
        {more > 0 && <li className="muted">and {more} more</li>}
      </ul>
    </details>
  );
}

function FittingAgents({ lot }: { lot: LotFit }) {
  const fitting = lot.agents.filter((agent) => agent.fits);
  const others = lot.agents.filter((agent) => !agent.fits);
  const wants =
    [
      lot.demand.engine,
      lot.demand.unit,
      lot.demand.precision,
      lot.demand.service,
      lot.demand.containers.join(" or "),
      lot.demand.launcher,
    ]
      .filter(Boolean)
      .join(", ") || lot.demand.kind;
  return (
    <section className="fits" aria-label={`Agents for ${wants}`}>
      <p>
        <b>
          {lot.jobs} job{lot.jobs === 1 ? "" : "s"}
        </b>{" "}
        <span className="mono muted">{wants}</span>{" "}
        <Badge tone={fitting.length > 0 ? "good" : "warn"}>
          {fitting.length} of {lot.agents.length} agents fit
        </Badge>
      </p>
      <ul>
        {fitting.slice(0, 8).map((agent) => (
          <li key={agent.agent_id}>
            {agent.agent_name} <StateBadge of={agent.state} />
          </li>
        ))}
        {others.slice(0, 8).map((agent) => (
          <li key={agent.agent_id} className="muted">
            {agent.agent_name} lacks{" "}
            {agent.lacks
              .map(
                (lack) =>
                  `${lack.fact} ${lack.wanted} (has ${lack.has ?? "none"})${lack.reason ? `: ${lack.reason}` : ""}`,
              )
              .join("; ")}
          </li>
        ))}
      </ul>
    </section>
  );
}
