// A list of problems: regressions, failed experiments and gates, lost agents and open alarms.
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import type { Change, Glance } from "@/api/schema";
import { Badge, type Tone, ToneShape } from "@/components/Badge";
import { Card } from "@/components/layout";
import { MetricName } from "@/components/MetricName";
import { formatShare, formatValue } from "@/components/number";
import { RelativeTime } from "@/components/time";

interface Item {
  key: string;
  tone: Tone;
  word: string;
  text: ReactNode;
  at: string | null | undefined;
}

export function Troubles({ glance }: { glance: Glance }) {
  const items = listItems(glance);
  if (items.length === 0)
    return (
      <p className="calm">
        <ToneShape tone="good" /> Nothing got worse, nothing failed, no agent is lost.
      </p>
    );
  return (
    <Card title="Needs attention" actions={<Badge tone="warn">{items.length}</Badge>}>
      <ul className="troubles">
        {items.map((item) => (
          <li key={item.key}>
            <Badge tone={item.tone}>{item.word}</Badge>
            <span className="text">{item.text}</span>
            <span className="muted small">
              <RelativeTime at={item.at} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function listItems(glance: Glance): Item[] {
  return [
    ...glance.changes.map((change): Item => ({
      key: `change ${change.id}`,
      tone: change.kind === "regression" ? "bad" : change.kind === "improvement" ? "good" : "warn",
      word: change.kind.replaceAll("_", " "),
      text: <ChangeText change={change} />,
      at: change.noticed_at,
    })),
    ...glance.failed.map((one): Item => ({
      key: `failed ${one.experiment_id}`,
      tone: one.state === "failed" ? "bad" : "warn",
      word: one.state,
      text: (
        <>
          <Link
            to="/experiments/$experimentId"
            params={{ experimentId: one.experiment_id }}
            search={{ part: "jobs" }}
            className="inline"
          >
            {one.name}
          </Link>
          : {one.text}
        </>
      ),
      at: one.ended_at,
    })),
    ...glance.failed_gates.map((gate): Item => ({
      key: `gate ${gate.experiment_id}`,
      tone: "bad",
      word: "gate failed",
      text: (
        <>
          <Link to="/experiments/$experimentId" params={{ experimentId: gate.experiment_id }}>
            {gate.name}
          </Link>
          : {gate.text}
        </>
      ),
      at: gate.ended_at,
    })),
    ...glance.troubles.map((agent): Item => ({
      key: `agent ${agent.id}`,
      tone: "bad",
      word: `agent ${agent.state.replaceAll("_", " ")}`,
      text: (
        <>
          <b>{agent.name}</b> {agent.reason}
        </>
      ),
      at: agent.seen_at,
    })),
    ...glance.incidents.map((incident): Item => ({
      key: `incident ${incident.id}`,
      tone: "warn",
      word: "alarm",
      text: (
        <>
          <b>{incident.alarm}</b> {incident.text || incident.subject}
        </>
      ),
      at: incident.opened_at,
    })),
  ];
}

function ChangeText({ change }: { change: Change }) {
  const levels = `${formatValue(change.before.median, change.unit)} → ${formatValue(change.after.median, change.unit)}`;
  return (
    <>
      <Link
        to="/history/$seriesId"
        params={{ seriesId: change.series_id }}
        search={{ metric: change.metric, of: change.experiment_id }}
        className="inline"
      >
        {change.name}
      </Link>
      : <MetricName of={change.metric} /> {change.effect > 0 ? "+" : "−"}
      {formatShare(Math.abs(change.effect))} on {change.machine} ({levels})
    </>
  );
}
