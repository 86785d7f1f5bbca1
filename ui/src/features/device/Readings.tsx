// What the probes of a device read: the newest value of each quantity, and a chart of one part of the device.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";

import type { Agent, RecentReadings } from "@/api/schema";
import { ReadingsChart } from "@/charts/ReadingsChart";
import { Sparkline } from "@/charts/Sparkline";
import { SelectField } from "@/components/Field";
import { DASH, formatValue } from "@/components/number";
import { EmptyState, QueryContent } from "@/components/states";
import { RelativeTime } from "@/components/time";

import { readingsQuery } from "./queries";

const route = getRouteApi("/fleet/$agentId");

type Line = RecentReadings["lines"][number];

export function Readings({ agent }: { agent: Agent }) {
  return (
    <QueryContent query={useQuery(readingsQuery(agent.id))}>
      {(readings) =>
        readings.lines.length === 0 ? <NoReadings agent={agent} /> : <Shown agent={agent} readings={readings} />
      }
    </QueryContent>
  );
}

function NoReadings({ agent }: { agent: Agent }) {
  const isSilent = agent.state === "lost" || agent.state === "stopped";
  return (
    <EmptyState title={isSilent ? `${agent.name} is ${agent.state}` : "No readings yet"}>
      <p>
        {isSilent
          ? "A server keeps readings while an agent is connected."
          : "The agent sends them every few seconds while it runs a job, and every 30 s while it waits. Two are needed."}
      </p>
    </EmptyState>
  );
}

function Shown({ agent, readings }: { agent: Agent; readings: RecentReadings }) {
  const { part: asked } = route.useSearch();
  const navigate = route.useNavigate();
  const parts = [...new Set(readings.lines.map((one) => one.part))];
  const part = parts.find((one) => one === asked) ?? parts[0] ?? "host";
  const lines = readings.lines.filter((one) => one.part === part);
  return (
    <div className="stack">
      <div className="row spread">
        {parts.length > 1 ? (
          <SelectField
            label="Part"
            value={part}
            options={parts.map((one) => ({ value: one, label: namePart(one, agent) }))}
            onChange={(to) => void navigate({ search: { part: to }, replace: true })}
          />
        ) : (
          <span />
        )}
        <span className="muted small">
          Read <RelativeTime at={readings.at.at(-1)} />; every 5 s during a job, every 30 s between jobs.
        </span>
      </div>
      <ul className="readings" aria-label={`${agent.name} now`}>
        {lines.map((one) => (
          <Reading key={one.name} line={one} />
        ))}
      </ul>
      <ReadingsChart readings={readings} part={part} label={`${namePart(part, agent)} of ${agent.name}`} />
    </div>
  );
}

function Reading({ line }: { line: Line }) {
  const value = line.values.at(-1) ?? null;
  return (
    <li>
      <span className="muted small">{line.title}</span>
      <b>{value === null ? DASH : formatValue(value, line.unit)}</b>
      <Sparkline values={line.values} label={`${line.title} lately`} width={140} height={24} />
    </li>
  );
}

function namePart(part: string, agent: Agent): string {
  if (part === "host") return "Host";
  const gpu = agent.capabilities.device?.hardware.gpus.find((one) => `gpu${one.index}` === part);
  const number = part.replace("gpu", "GPU ");
  return gpu ? `${number}: ${gpu.name}` : number;
}
