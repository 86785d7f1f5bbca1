// A job's log, followed while it grows and shown as plain text.
import { getRouteApi } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";

import { ApiError, sendRequest } from "@/api/client";
import { Card } from "@/components/layout";
import { Failure, Loading } from "@/components/states";

import type { LiveExperiment } from "./liveExperiment";

const route = getRouteApi("/experiments/$experimentId");
const WAIT_S = 20;
const PAUSE_MS = 1000;
// Enough to read, and no more than a page can hold.
const MOST_CHARACTERS = 400_000;

export function Logs({ live }: { live: LiveExperiment }) {
  const { job } = route.useSearch();
  const navigate = route.useNavigate();
  const jobs = [...live.jobs.values()];
  const running = jobs.find((one) => one.state === "leased");
  const chosen = live.jobs.get(job ?? "") ?? running ?? jobs[0];
  if (!chosen) return <Loading what="Loading the jobs" />;
  return (
    <Card
      title="Log"
      actions={
        <select
          aria-label="Job"
          value={chosen.id}
          onChange={(event) =>
            void navigate({ search: (before) => ({ ...before, job: event.target.value }), replace: true })
          }
        >
          {jobs.map((one) => (
            <option key={one.id} value={one.id}>
              {one.title} ({one.state})
            </option>
          ))}
        </select>
      }
    >
      <LogText key={`${chosen.id} ${chosen.attempt}`} jobId={chosen.id} />
    </Card>
  );
}

function LogText({ jobId }: { jobId: string }) {
  const [text, setText] = useState("");
  const [ended, setEnded] = useState(false);
  const [isCut, setIsCut] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const place = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    const stop = new AbortController();
    const followLog = async (): Promise<void> => {
      let offset = "0";
      while (!stop.signal.aborted) {
        try {
          const path = `/api/v1/jobs/${encodeURIComponent(jobId)}/logs?offset=${offset}&wait_s=${WAIT_S}`;
          const response = await sendRequest(new Request(new URL(path, location.origin), { signal: stop.signal }));
          const piece = await response.text();
          offset = response.headers.get("Prony-Next-Offset") ?? offset;
          if (piece) setText((before) => (before + piece).slice(-MOST_CHARACTERS));
          setIsCut(false);
          if (response.headers.get("Prony-Ended") === "true") {
            setEnded(true);
            return;
          }
        } catch (caught) {
          if (!isTransient(caught)) throw caught;
          setIsCut(true);
          await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        }
      }
    };
    followLog().catch((caught: unknown) => {
      if (!stop.signal.aborted) setError(caught);
    });
    return () => stop.abort();
  }, [jobId]);
  useEffect(() => {
    const element = place.current;
    if (element && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [text]);
  const noteScroll = (): void => {
    const element = place.current;
    if (element) isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
  };
  if (error !== null) return <Failure error={error} />;
  return (
    <>
      <pre ref={place} className="code log" tabIndex={0} aria-label="Log of the job" onScroll={noteScroll}>
        {text || (ended ? "The log is empty." : "Nothing yet.")}
      </pre>
      <p className="muted small" role="status">
        {ended
          ? "The log is complete."
          : isCut
            ? "The connection is lost; trying again."
            : "Live: new lines are added."}
      </p>
    </>
  );
}

/** A server that is gone or begins anew may come back and go on where it was; a refusal stays one. */
function isTransient(error: unknown): boolean {
  return error instanceof ApiError ? error.status === 0 || error.status >= 500 : error instanceof TypeError;
}
