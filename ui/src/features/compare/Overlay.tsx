// The two jobs of a match in, their distributions laid over each other out.
import { useQueries } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";

import type { Match } from "@/api/schema";
import { DistributionChart } from "@/charts/DistributionChart";
import { Choice } from "@/components/Field";
import { Card } from "@/components/layout";
import { Failure, Loading } from "@/components/states";

import { distributionQuery } from "./queries";

const VIEWS = [
  { value: "histogram", label: "how often" },
  { value: "ecdf", label: "share at or below" },
];

export function Overlay({ match }: { match: Match }) {
  const { view = "histogram", sample } = useSearch({ from: "/compare" });
  const navigate = useNavigate({ from: "/compare" });
  const jobs = useMemo(() => [match.baseline.job_id, match.candidate.job_id], [match]);
  const found = useQueries({ queries: jobs.map((job) => distributionQuery(job, sample)) });
  const [first, second] = found;
  const shown = useMemo(
    () =>
      first?.data && second?.data
        ? [
            { name: `baseline ${jobs[0] ?? ""}`, distribution: first.data },
            { name: `candidate ${jobs[1] ?? ""}`, distribution: second.data },
          ]
        : null,
    [first?.data, second?.data, jobs],
  );
  const error = found.find((one) => one.error)?.error;
  const metrics = shown?.[0]?.distribution.metrics ?? [];
  const metric = sample ?? shown?.[0]?.distribution.metric ?? "";
  return (
    <Card
      title="Distributions"
      actions={
        <>
          {metrics.length > 1 && (
            <Choice
              label="Metric"
              value={metric}
              options={metrics.map((one) => ({ value: one, label: one }))}
              onChange={(one) => void navigate({ search: (before) => ({ ...before, sample: one }), replace: true })}
            />
          )}
          <Choice
            label="Shown as"
            value={view}
            options={VIEWS}
            onChange={(one) => void navigate({ search: (before) => ({ ...before, view: one === "ecdf" ? "ecdf" : "histogram" }), replace: true })}
          />
        </>
      }
    >
      {shown ? <DistributionChart shown={shown} view={view} /> : error ? <Failure error={error} /> : <Loading what="Gathering samples" />}
      <p className="muted small">Single samples of all runs. They show the shape; what is concluded rests on one number a run.</p>
    </Card>
  );
}
