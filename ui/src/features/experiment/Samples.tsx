// What lies behind a job's numbers: how its samples are spread, how they went over time, cold against warm, the counters.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";

import { DistributionChart } from "@/charts/DistributionChart";
import { StartsChart } from "@/charts/StartsChart";
import { TelemetryChart } from "@/charts/TelemetryChart";
import { TimelineChart } from "@/charts/TimelineChart";
import { Card } from "@/components/layout";
import { counted } from "@/components/number";
import { Empty, Shown } from "@/components/states";

import { ChosenJob } from "./ChosenJob";
import { countersQuery, distributionQuery, startsQuery, timelineQuery } from "./queries";

const route = getRouteApi("/experiments/$experimentId");

interface Of {
  experimentId: string;
  jobId: string;
}

export function Samples({ experimentId }: { experimentId: string }) {
  return (
    <ChosenJob experimentId={experimentId}>
      {(jobId) => (
        <div className="stack wide">
          <Spread key={`spread ${jobId}`} experimentId={experimentId} jobId={jobId} />
          <Course experimentId={experimentId} jobId={jobId} />
          <ColdAndWarm experimentId={experimentId} jobId={jobId} />
        </div>
      )}
    </ChosenJob>
  );
}

function Spread({ experimentId, jobId }: Of) {
  const { metric, view = "histogram" } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(distributionQuery(experimentId, jobId, metric));
  return (
    <Shown query={query} what="Counting samples">
      {(found) => (
        <Card
          title="Distribution"
          actions={
            <>
              <select
                aria-label="Metric"
                value={found.metric}
                onChange={(event) => void navigate({ search: (before) => ({ ...before, metric: event.target.value }), replace: true })}
              >
                {found.metrics.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
              <button
                type="button"
                className="button slim"
                onClick={() => void navigate({ search: (before) => ({ ...before, view: view === "ecdf" ? "histogram" : "ecdf" }), replace: true })}
              >
                {view === "ecdf" ? "Show how often" : "Show the share below"}
              </button>
            </>
          }
        >
          <p className="muted small">{counted(found.count)} samples, counted by the server</p>
          <DistributionChart shown={[{ name: found.title, distribution: found }]} view={view} />
        </Card>
      )}
    </Shown>
  );
}

function Course({ experimentId, jobId }: Of) {
  const query = useQuery(timelineQuery(experimentId, jobId));
  return (
    <Card title="Over time">
      <Shown query={query}>{(found) => <TimelineChart timeline={found} />}</Shown>
    </Card>
  );
}

function ColdAndWarm({ experimentId, jobId }: Of) {
  const query = useQuery(startsQuery(experimentId, jobId));
  if (query.data?.runs.length === 0 || query.error) return null;
  return (
    <Card title="Cold against warm">
      <Shown query={query}>{(found) => <StartsChart starts={found} />}</Shown>
    </Card>
  );
}

export function Telemetry({ experimentId }: { experimentId: string }) {
  return (
    <ChosenJob experimentId={experimentId}>{(jobId) => <Beside experimentId={experimentId} jobId={jobId} />}</ChosenJob>
  );
}

function Beside({ experimentId, jobId }: Of) {
  const query = useQuery(countersQuery(experimentId, jobId));
  return (
    <Card title="What the machine did meanwhile">
      <Shown query={query}>
        {(found) =>
          found.series.length === 0 ? (
            <Empty title="No probe read anything">
              <p>Probes read counters of the machine while a job runs; this one had none.</p>
            </Empty>
          ) : (
            <TelemetryChart counters={found} />
          )
        }
      </Shown>
    </Card>
  );
}
