// A job's samples: their distribution, their course over time, cold and warm starts, and counters.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";

import { DistributionChart } from "@/charts/DistributionChart";
import { StartsChart } from "@/charts/StartsChart";
import { TelemetryChart } from "@/charts/TelemetryChart";
import { TimelineChart } from "@/charts/TimelineChart";
import { Card } from "@/components/layout";
import { formatCount } from "@/components/number";
import { EmptyState, QueryContent } from "@/components/states";

import { JobChooser } from "./JobChooser";
import { countersQuery, distributionQuery, startsQuery, timelineQuery } from "./queries";

const route = getRouteApi("/experiments/$experimentId");

interface JobProps {
  experimentId: string;
  jobId: string;
}

export function Samples({ experimentId }: { experimentId: string }) {
  return (
    <JobChooser experimentId={experimentId}>
      {(jobId) => (
        <div className="stack wide">
          <DistributionCard key={`spread ${jobId}`} experimentId={experimentId} jobId={jobId} />
          <TimelineCard experimentId={experimentId} jobId={jobId} />
          <StartsCard experimentId={experimentId} jobId={jobId} />
        </div>
      )}
    </JobChooser>
  );
}

function DistributionCard({ experimentId, jobId }: JobProps) {
  const { metric, view = "histogram" } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(distributionQuery(experimentId, jobId, metric));
  return (
    <QueryContent query={query} what="Counting samples">
      {(found) => (
        <Card
          title="Distribution"
          actions={
            <>
              <select
                aria-label="Metric"
                value={found.metric}
                onChange={(event) =>
                  void navigate({ search: (before) => ({ ...before, metric: event.target.value }), replace: true })
                }
              >
                {found.metrics.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
              <button
                type="button"
                className="button slim"
                onClick={() =>
                  void navigate({
                    search: (before) => ({ ...before, view: view === "ecdf" ? "histogram" : "ecdf" }),
                    replace: true,
                  })
                }
              >
                {view === "ecdf" ? "Show how often" : "Show the share below"}
              </button>
            </>
          }
        >
          <p className="muted small">{formatCount(found.count)} samples, counted by the server</p>
          <DistributionChart shown={[{ name: found.title, distribution: found }]} view={view} />
        </Card>
      )}
    </QueryContent>
  );
}

function TimelineCard({ experimentId, jobId }: JobProps) {
  const query = useQuery(timelineQuery(experimentId, jobId));
  return (
    <Card title="Over time">
      <QueryContent query={query}>{(found) => <TimelineChart timeline={found} />}</QueryContent>
    </Card>
  );
}

function StartsCard({ experimentId, jobId }: JobProps) {
  const query = useQuery(startsQuery(experimentId, jobId));
  if (query.data?.runs.length === 0 || query.error) return null;
  return (
    <Card title="Cold against warm">
      <QueryContent query={query}>{(found) => <StartsChart starts={found} />}</QueryContent>
    </Card>
  );
}

export function Telemetry({ experimentId }: { experimentId: string }) {
  return (
    <JobChooser experimentId={experimentId}>
      {(jobId) => <CountersCard experimentId={experimentId} jobId={jobId} />}
    </JobChooser>
  );
}

function CountersCard({ experimentId, jobId }: JobProps) {
  const query = useQuery(countersQuery(experimentId, jobId));
  return (
    <Card title="What the machine did meanwhile">
      <QueryContent query={query}>
        {(found) =>
          found.series.length === 0 ? (
            <EmptyState title="No probe read anything">
              <p>Probes read counters of the machine while a job runs; this one had none.</p>
            </EmptyState>
          ) : (
            <TelemetryChart counters={found} />
          )
        }
      </QueryContent>
    </Card>
  );
}
