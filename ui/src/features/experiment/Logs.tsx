// A job's log: what happens to it and what it prints, followed while it grows, searched and saved.
import { getRouteApi } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { DeferredTextField, SelectField } from "@/components/Field";
import { Card } from "@/components/layout";
import { Failure, Loading } from "@/components/states";
import { useAction } from "@/components/toasts";

import type { LiveExperiment } from "./liveExperiment";
import { formatLog } from "./logText";
import { type FollowedLog, type LogWanted, MOST_CHARACTERS, saveLog, useLog } from "./useLog";

const route = getRouteApi("/experiments/$experimentId");

export function Logs({ live }: { live: LiveExperiment }) {
  const { job } = route.useSearch();
  const navigate = route.useNavigate();
  const act = useAction();
  const jobs = [...live.jobs.values()];
  const running = jobs.find((one) => one.state === "leased");
  const chosen = live.jobs.get(job ?? "") ?? running ?? jobs[0];
  if (!chosen) return <Loading what="Loading the jobs" />;
  return (
    <Card
      title="Log"
      actions={
        <>
          <select
            aria-label="Job"
            value={chosen.id}
            onChange={(event) =>
              void navigate({
                search: (before) => ({ ...before, job: event.target.value, source: undefined }),
                replace: true,
              })
            }
          >
            {jobs.map((one) => (
              <option key={one.id} value={one.id}>
                {one.title} ({one.state})
              </option>
            ))}
          </select>
          <button type="button" className="button slim" onClick={() => void act(() => saveLog(chosen.id))}>
            Download
          </button>
        </>
      }
    >
      <LogLines key={`${chosen.id} ${chosen.attempt}`} jobId={chosen.id} />
    </Card>
  );
}

function LogLines({ jobId }: { jobId: string }) {
  const { find = "", source = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const [sources, setSources] = useState<readonly string[]>([]);
  // What was seen stays to be chosen, although a choice hides the rest.
  const noteSources = useCallback((found: readonly string[]) => {
    setSources((before) =>
      found.every((one) => before.includes(one)) ? before : [...new Set([...before, ...found])].sort(),
    );
  }, []);
  const offered = source && !sources.includes(source) ? [...sources, source] : sources;
  return (
    <div className="stack">
      <div className="log-choice">
        <DeferredTextField
          label="Search"
          value={find}
          placeholder="error"
          onChange={(next) =>
            void navigate({ search: (before) => ({ ...before, find: next || undefined }), replace: true })
          }
        />
        <SelectField
          label="Source"
          value={source}
          options={[{ value: "", label: "all" }, ...offered.map((one) => ({ value: one, label: one }))]}
          onChange={(next) =>
            void navigate({ search: (before) => ({ ...before, source: next || undefined }), replace: true })
          }
        />
      </div>
      <FollowedLines key={`${source} ${find}`} jobId={jobId} find={find} source={source} onSources={noteSources} />
    </div>
  );
}

function FollowedLines({ onSources, ...wanted }: LogWanted & { onSources: (found: readonly string[]) => void }) {
  const log = useLog(wanted);
  const { text, sources, day, zone } = useMemo(() => formatLog(log.text), [log.text]);
  const place = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => onSources(sources), [sources, onSources]);
  useEffect(() => {
    const element = place.current;
    if (element && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [text]);
  const noteScroll = (): void => {
    const element = place.current;
    if (element) isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
  };
  if (log.error !== null) return <Failure error={log.error} />;
  return (
    <>
      <pre ref={place} className="code log" tabIndex={0} aria-label="Log of the job" onScroll={noteScroll}>
        {text || describeEmpty(log, wanted)}
      </pre>
      <div className="row spread muted small">
        <span role="status">{text || !log.ended ? describeState(log) : ""}</span>
        {day !== null && (
          <span>
            {day}, times of {zone}
          </span>
        )}
      </div>
    </>
  );
}

function describeEmpty(log: FollowedLog, { find, source }: LogWanted): string {
  if (find || source) return log.ended ? "No line matches." : "No line matches yet.";
  return log.ended ? "No log was kept. The tab Files has what the result holds." : "Nothing yet.";
}

function describeState(log: FollowedLog): string {
  const shortened = log.isShortened
    ? ` Only the last ${MOST_CHARACTERS.toLocaleString("en")} characters are shown; Download has all.`
    : "";
  if (log.ended) return `The log is complete.${shortened}`;
  if (log.isCut) return "The connection is lost; trying again.";
  return `Live: new lines are added.${shortened}`;
}
