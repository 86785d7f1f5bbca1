// Links from an experiment to what else is known of it: matrix, history, the previous run and the agents that ran it.
import { Link } from "@tanstack/react-router";

import type { Experiment, QueuedJob } from "@/api/schema";

const MOST_AGENTS = 4;

export function RelatedLinks({ experiment, jobs }: { experiment: Experiment; jobs: readonly QueuedJob[] }) {
  const agents = [...new Set(jobs.flatMap((job) => job.agent_id ?? []))];
  const axes = listAxes(experiment);
  return (
    <nav className="row small" aria-label="Related pages">
      <Link to="/history" search={{ name: experiment.name }}>
        History of this recipe
      </Link>
      {experiment.job_count > 1 && (
        <Link to="/matrix" search={{ ids: experiment.id, ...axes }}>
          Matrix
        </Link>
      )}
      {agents.slice(0, MOST_AGENTS).map((agent) => (
        <Link key={agent} to="/fleet/$agentId" params={{ agentId: agent }}>
          Agent {agent}
        </Link>
      ))}
      {agents.length > MOST_AGENTS && <Link to="/fleet">and {agents.length - MOST_AGENTS} more agents</Link>}
    </nav>
  );
}

/** The settings that the recipe varies are the rows and columns that somebody wants to see. */
function listAxes({ recipe }: Experiment): { rows?: string; columns?: string } {
  const [rows, columns] = Object.keys(recipe.matrix).filter((key) => key !== "exclude");
  return { ...(rows ? { rows } : {}), ...(columns ? { columns } : {}) };
}
