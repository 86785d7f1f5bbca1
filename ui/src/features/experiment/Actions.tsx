// The actions on an experiment: run again, score again, cancel, retry, compare, export, delete.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { api, downloadFile, readBody } from "@/api/client";
import { previousRunQuery } from "@/api/queries";
import type { Experiment, ExperimentView } from "@/api/schema";
import { ConfirmButton, Dialog } from "@/components/Dialog";
import { useAction } from "@/components/toasts";

import { isOver } from "./liveExperiment";
import { resultsQuery } from "./queries";

export function Actions({ view }: { view: ExperimentView }) {
  const { experiment, counts } = view;
  const act = useAction();
  const navigate = useNavigate();
  const client = useQueryClient();
  const [exporting, setExporting] = useState(false);
  const params = { params: { path: { experiment_id: experiment.id } } };
  const isRunning = !isOver(view);
  const entries = useQuery({ ...resultsQuery(experiment.id), enabled: !isRunning }).data?.entries ?? [];
  const hasScores = entries.some(({ summary }) => Object.keys(summary.items).length > 0);
  const mayRetry = !isRunning && ((counts.failed ?? 0) > 0 || (counts.partial ?? 0) > 0 || (counts.cancelled ?? 0) > 0);
  const invalidate = (): Promise<void> => client.invalidateQueries({ queryKey: ["experiment", experiment.id] });
  const rerun = async (): Promise<void> => {
    const made = await readBody(api.POST("/api/v1/experiments/{experiment_id}/rerun", params));
    await navigate({ to: "/experiments/$experimentId", params: { experimentId: made.experiment.id } });
  };
  const retry = async (): Promise<void> => {
    await readBody(api.POST("/api/v1/experiments/{experiment_id}/retry", params));
    await invalidate();
  };
  const score = async (): Promise<void> => {
    await readBody(api.POST("/api/v1/experiments/{experiment_id}/score", { ...params, body: { jobs: {} } }));
    await invalidate();
  };
  const cancel = async (): Promise<void> => {
    await readBody(api.POST("/api/v1/experiments/{experiment_id}/cancel", params));
    await invalidate();
  };
  const remove = async (): Promise<void> => {
    await readBody(
      api.DELETE("/api/v1/experiments/{experiment_id}", {
        params: { path: { experiment_id: experiment.id }, query: { force: isRunning } },
      }),
    );
    client.removeQueries({ queryKey: ["experiment", experiment.id] });
    await navigate({ to: "/experiments" });
  };
  return (
    <>
      {isRunning && (
        <ConfirmButton
          label="Cancel"
          title="Cancel this experiment?"
          question="Waiting jobs are cancelled at once, running ones as soon as their agents report again. Results are kept."
          yes="Cancel it"
          act={cancel}
        />
      )}
      {mayRetry && (
        <button
          type="button"
          className="button"
          onClick={() => void act(retry, "Jobs that did not complete wait again")}
        >
          Retry failed jobs
        </button>
      )}
      <button type="button" className="button" onClick={() => void act(rerun, "Submitted again")}>
        Run again
      </button>
      <Link className="button" to="/run" search={{ from: experiment.id }}>
        Edit and run
      </Link>
      {hasScores && (
        <button
          type="button"
          className="button"
          title="Compute the scores of the stored answers again; nothing is run"
          onClick={() => void act(score, "Scored again")}
        >
          Score again
        </button>
      )}
      <CompareLink experiment={experiment} />
      <Link className="button" to="/reports" search={{ of: experiment.id }}>
        Report
      </Link>
      <button type="button" className="button" onClick={() => setExporting(true)}>
        Export
      </button>
      <ConfirmButton
        label="Delete"
        className="button danger"
        title="Delete this experiment?"
        question={`“${experiment.name}” is deleted with all its numbers, samples and logs. This cannot be undone.`}
        yes="Delete it"
        act={remove}
      />
      {exporting && <ExportDialog of={experiment} onClose={() => setExporting(false)} />}
    </>
  );
}

/** Leads to the comparison with the run that it repeats, else with the previous one of its recipe; a duet has two sides of its own. */
function CompareLink({ experiment }: { experiment: Experiment }) {
  const isDuet = experiment.recipe.duet != null;
  const previous = useQuery({ ...previousRunQuery(experiment), enabled: !isDuet && !experiment.rerun_of });
  const baseline = isDuet ? null : (experiment.rerun_of ?? previous.data?.id);
  return (
    <Link
      className="button"
      to="/compare"
      search={{ of: baseline ? `${baseline},${experiment.id}` : experiment.id }}
      title={baseline ? `with ${baseline}, the run before it` : undefined}
    >
      Compare
    </Link>
  );
}

const REPORTS: readonly (readonly [string, string, string])[] = [
  ["html", "html", "Report as a web page"],
  ["pdf", "pdf", "Report as PDF"],
  ["md", "md", "Report as Markdown"],
  ["json", "json", "All numbers as JSON"],
  ["csv", "csv", "All numbers as CSV"],
  ["junit", "xml", "Gates as JUnit"],
  ["github", "md", "Summary for a pull request"],
];

function ExportDialog({ of: experiment, onClose }: { of: ExperimentView["experiment"]; onClose: () => void }) {
  const act = useAction();
  const { id: experimentId } = experiment;
  const exports = useQuery(resultsQuery(experimentId)).data?.exports ?? [];
  const save = (path: string, name: string): void => void act(() => downloadFile(path, name), `${name} is saved`);
  return (
    <Dialog title="Export" onClose={onClose}>
      <ul className="exports">
        <li>
          <button
            type="button"
            className="button"
            onClick={() =>
              save(`/api/v1/experiments/${encodeURIComponent(experimentId)}/export`, `${experimentId}.tar`)
            }
          >
            Everything
          </button>
          <span className="muted">
            recipe, results, every sample and log, with checksums: what “prony import” reads
          </span>
        </li>
        {REPORTS.map(([format, ending, about]) => (
          <li key={format}>
            <button
              type="button"
              className="button"
              onClick={() =>
                save(
                  `/api/v1/experiments/${encodeURIComponent(experimentId)}/report?format=${format}`,
                  `${experimentId}-${format}.${ending}`,
                )
              }
            >
              {format}
            </button>
            <span className="muted">{about}</span>
          </li>
        ))}
        {exports.map(({ name: format, about }) => (
          <li key={format}>
            <button
              type="button"
              className="button"
              onClick={() =>
                save(
                  `/api/v1/experiments/${encodeURIComponent(experimentId)}/export?format=${format}`,
                  `${experimentId}-${format}.tar`,
                )
              }
            >
              {format}
            </button>
            <span className="muted">{about}</span>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
