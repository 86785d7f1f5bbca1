// The distributions of both jobs of a match in one chart.
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";

import type { Distribution, Match } from "@/api/schema";
import { DistributionChart } from "@/charts/DistributionChart";
import type { NamedDistribution } from "@/charts/options/distribution";
import { SelectField } from "@/components/Field";
import { Card } from "@/components/layout";
import { Failure, Loading } from "@/components/states";

import { distributionQuery } from "./queries";

const VIEWS = [
  { value: "histogram", label: "histogram" },
  { value: "ecdf", label: "ECDF" },
];

export function DistributionOverlay({ match }: { match: Match }) {
  const { view = "histogram", sample } = useSearch({ from: "/compare" });
  const navigate = useNavigate({ from: "/compare" });
  const first = useQuery(distributionQuery(match.baseline.job_id, sample));
  const second = useQuery(distributionQuery(match.candidate.job_id, sample));
  const [baseline, candidate] = [first.data, second.data];
  const shown = useMemo(
    () =>
      baseline && candidate ? [nameDistribution("baseline", baseline), nameDistribution("candidate", candidate)] : null,
    [baseline, candidate],
  );
  const error = first.error ?? second.error;
  const metrics = shown?.[0]?.distribution.metrics ?? [];
  const metric = sample ?? shown?.[0]?.distribution.metric ?? "";
  return (
    <Card
      title="Distributions"
      actions={
        <>
          {metrics.length > 1 && (
            <SelectField
              label="Metric"
              value={metric}
              options={metrics.map((one) => ({ value: one, label: one }))}
              onChange={(one) => void navigate({ search: (before) => ({ ...before, sample: one }), replace: true })}
            />
          )}
          <SelectField
            label="Shown as"
            value={view}
            options={VIEWS}
            onChange={(one) =>
              void navigate({
                search: (before) => ({ ...before, view: one === "ecdf" ? "ecdf" : "histogram" }),
                replace: true,
              })
            }
          />
        </>
      }
    >
      {shown ? (
        <DistributionChart shown={shown} view={view} />
      ) : error ? (
        <Failure error={error} />
      ) : (
        <Loading what="Loading samples" />
      )}
      <p className="muted small">
        Single samples of all runs. They show the shape; what is concluded rests on one number a run.
      </p>
    </Card>
  );
}

function nameDistribution(name: string, distribution: Distribution): NamedDistribution {
  return { name: `${name} ${distribution.job_id}`, distribution };
}
