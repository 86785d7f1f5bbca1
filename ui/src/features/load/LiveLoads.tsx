// Charts of an experiment's running loads.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { streamEvents } from "@/api/sse";
import { LiveChart } from "@/charts/LiveChart";
import { Badge } from "@/components/Badge";
import { Card } from "@/components/layout";

import { applyProgress, type ProgressEvent, type RunningLoad } from "./ticks";

const PAUSE_MS = 2000;

export function LiveLoads({ experimentId }: { experimentId: string }) {
  const [running, setRunning] = useState<ReadonlyMap<string, RunningLoad>>(new Map());
  const client = useQueryClient();
  useEffect(() => {
    const stop = new AbortController();
    const followStream = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        try {
          for await (const { event, data } of streamEvents(`/api/v1/experiments/${experimentId}/events`, stop.signal)) {
            if (event === "progress") setRunning((now) => applyProgress(now, JSON.parse(data) as ProgressEvent));
            if (event === "job") void client.invalidateQueries({ queryKey: ["sweep"] });
          }
        } catch {
          // Cut off: it may come back.
        }
        // The stream ends with the experiment, which then is no longer shown here, or with the server.
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    };
    void followStream();
    return () => stop.abort();
  }, [experimentId, client]);
  return (
    <>
      {[...running].map(([jobId, one]) => (
        <Card
          key={jobId}
          title={`Now: ${jobId}`}
          actions={
            <Badge tone="info">
              {one.runs > 0 ? `run ${Math.min(one.run + 1, one.runs)} of ${one.runs}` : "running"}
            </Badge>
          }
        >
          {one.ticks.length > 1 ? (
            <LiveChart ticks={one.ticks} label={`Current load of ${jobId}`} />
          ) : (
            <p className="muted">Waiting for the first numbers …</p>
          )}
        </Card>
      ))}
    </>
  );
}
