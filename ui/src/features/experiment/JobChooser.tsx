// Chooses the job that a tab shows and keeps the choice in the URL.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { Card } from "@/components/layout";
import { EmptyState, QueryContent } from "@/components/states";

import { resultsQuery } from "./queries";

const route = getRouteApi("/experiments/$experimentId");

export function JobChooser({
  experimentId,
  children,
}: {
  experimentId: string;
  children: (jobId: string) => ReactNode;
}) {
  const { job } = route.useSearch();
  const navigate = route.useNavigate();
  const results = useQuery(resultsQuery(experimentId));
  return (
    <QueryContent query={results}>
      {(data) => {
        const entries = data?.entries ?? [];
        const chosen = entries.find((entry) => entry.job.id === job) ?? entries[0];
        if (!chosen)
          return (
            <Card>
              <EmptyState title="No job has ended yet">
                <p>Results appear here when a job ends.</p>
              </EmptyState>
            </Card>
          );
        return (
          <div className="stack wide">
            {entries.length > 1 && (
              <label className="row">
                <span className="muted">Job</span>
                <select
                  value={chosen.job.id}
                  onChange={(event) =>
                    void navigate({ search: (before) => ({ ...before, job: event.target.value }), replace: true })
                  }
                >
                  {entries.map((entry) => (
                    <option key={entry.job.id} value={entry.job.id}>
                      {entry.summary.title}
                    </option>
                  ))}
                </select>
              </label>
            )}
            {children(chosen.job.id)}
          </div>
        );
      }}
    </QueryContent>
  );
}
