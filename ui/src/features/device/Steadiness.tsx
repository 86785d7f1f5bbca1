// How steady a device is: the canary beside each of its results, and how much the runs of each vary.
import { getRouteApi } from "@tanstack/react-router";

import type { DeviceHistory } from "@/api/schema";
import { SteadinessChart } from "@/charts/SteadinessChart";
import { EmptyState } from "@/components/states";

const route = getRouteApi("/fleet/$agentId");

export function Steadiness({ history, name }: { history: DeviceHistory; name: string }) {
  const navigate = route.useNavigate();
  const known = history.results.filter((one) => one.noise != null || Object.keys(one.canary).length > 0);
  if (known.length === 0)
    return (
      <EmptyState title="No result yet that tells how steady this device is">
        <p>Each job times a fixed piece of work before and after every run: the canary of the machine's speed.</p>
      </EmptyState>
    );
  return (
    <>
      <p className="muted small">
        The canary is a fixed piece of work beside each run: where it gets slower, the machine did, and not the program.
        Noise is how much the runs of one result vary.
      </p>
      <SteadinessChart
        results={known}
        label={`Canary and noise of ${name}`}
        onPick={({ experimentId, jobId }) =>
          void navigate({
            to: "/experiments/$experimentId",
            params: { experimentId },
            search: { part: "jobs", job: jobId },
          })
        }
      />
    </>
  );
}
