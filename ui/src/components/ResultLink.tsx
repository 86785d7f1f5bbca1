// A link to the experiment of a result, by the id of its job.
import { Link } from "@tanstack/react-router";

export function ResultLink({ of: result }: { of: { experiment_id: string; job_id: string } }) {
  return (
    <Link to="/experiments/$experimentId" params={{ experimentId: result.experiment_id }} className="mono">
      {result.job_id}
    </Link>
  );
}
