// The list of alarms: condition, current state and recipients; new ones are added here.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import type { Alarm } from "@/api/schema";
import { Badge } from "@/components/Badge";
import { Card, Page } from "@/components/layout";
import { EmptyState, QueryContent } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { RelativeTime } from "@/components/time";

import { AddAlarm } from "./AddAlarm";
import { describeTarget, IncidentBadge, SeverityBadge } from "./badges";
import { alarmsQuery } from "./queries";

const COLUMNS: readonly Column<Alarm>[] = [
  {
    key: "name",
    heading: "Alarm",
    cell: (one) => (
      <Link to="/alarms/$alarmId" params={{ alarmId: one.id }}>
        <b>{one.name}</b>
      </Link>
    ),
  },
  { key: "when", heading: "When", cell: (one) => <span className="mono">{one.when}</span> },
  { key: "aim", heading: "About", cell: (one) => describeTarget(one) || <span className="muted">anything</span> },
  { key: "severity", heading: "Severity", cell: (one) => <SeverityBadge of={one.severity} /> },
  { key: "now", heading: "Now", cell: (one) => <IncidentBadge open={one.open} /> },
  { key: "to", heading: "Tells", cell: (one) => <Recipients of={one} /> },
  { key: "told", heading: "Last message", cell: (one) => <RelativeTime at={one.told_at} /> },
];

export function Alarms() {
  const alarms = useQuery(alarmsQuery());
  const [asked, setAsked] = useState(false);
  const add = (
    <button type="button" className="button primary" onClick={() => setAsked(true)}>
      Add an alarm
    </button>
  );
  return (
    <Page title="Alarms" about="Messages about regressions, failures and lost agents." actions={add}>
      <Card flush label="Alarms">
        <QueryContent query={alarms}>
          {({ items }) =>
            items.length === 0 ? (
              <EmptyState title="No alarm yet" actions={add}>
                <p>
                  An alarm waits for a regression, a failed gate, a lost agent or a metric beyond a limit, and sends a
                  message to a webhook, by mail, to Slack and others.
                </p>
              </EmptyState>
            ) : (
              <Table rows={items} columns={COLUMNS} keyOf={(one) => one.id} label="Alarms" />
            )
          }
        </QueryContent>
      </Card>
      {asked && <AddAlarm onClose={() => setAsked(false)} known={alarms.data?.items ?? []} />}
    </Page>
  );
}

function Recipients({ of: alarm }: { of: Alarm }) {
  const all = [...alarm.to, ...alarm.via.map((name) => `via ${name}`)];
  return all.length === 0 ? <Badge tone="warn">nobody</Badge> : <span>{all.join(", ")}</span>;
}
