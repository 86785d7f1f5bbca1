// Every alarm: what it waits for, whether that is so now, and whom it tells; and a new one.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import type { Alarm } from "@/api/schema";
import { Badge } from "@/components/Badge";
import { Card, Page } from "@/components/layout";
import { Empty, Shown } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { Ago } from "@/components/time";

import { AddAlarm } from "./AddAlarm";
import { aimOf, Now, Severity } from "./marks";
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
  { key: "aim", heading: "About", cell: (one) => aimOf(one) || <span className="muted">anything</span> },
  { key: "severity", heading: "Severity", cell: (one) => <Severity of={one.severity} /> },
  { key: "now", heading: "Now", cell: (one) => <Now open={one.open} /> },
  { key: "to", heading: "Tells", cell: (one) => <Told of={one} /> },
  { key: "told", heading: "Last told", cell: (one) => <Ago at={one.told_at} /> },
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
    <Page title="Alarms" about="Who is told when something is not as it should be." actions={add}>
      <Card flush label="Alarms">
        <Shown query={alarms}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty title="No alarm yet" actions={add}>
                <p>An alarm waits for a regression, a failed gate, a lost agent or a number beyond a limit, and tells people by a webhook, mail, Slack and the like.</p>
              </Empty>
            ) : (
              <Table rows={items} columns={COLUMNS} keyOf={(one) => one.id} label="Alarms" />
            )
          }
        </Shown>
      </Card>
      {asked && <AddAlarm onClose={() => setAsked(false)} known={alarms.data?.items ?? []} />}
    </Page>
  );
}

function Told({ of: alarm }: { of: Alarm }) {
  const all = [...alarm.to, ...alarm.via.map((name) => `via ${name}`)];
  return all.length === 0 ? <Badge tone="warn">nobody</Badge> : <span>{all.join(", ")}</span>;
}
