// The page of one alarm: its settings, incidents and deliveries.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";

import type { Alarm as OneAlarm, Delivery, Incident, TestAnswer } from "@/api/schema";
import { StateBadge } from "@/components/Badge";
import { ConfirmButton } from "@/components/Dialog";
import { Card, Facts, Page } from "@/components/layout";
import { EmptyState, Missing, QueryContent } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { formatInstant, RelativeTime } from "@/components/time";
import { useAction } from "@/components/toasts";

import { describeTarget, IncidentBadge, SeverityBadge } from "./badges";
import { alarmQuery, deliveriesQuery, incidentsQuery, removeAlarm, testAlarm } from "./queries";

const INCIDENTS: readonly Column<Incident>[] = [
  {
    key: "state",
    heading: "State",
    cell: (one) => (one.closed_at == null ? <IncidentBadge open={one.count} /> : <span className="muted">over</span>),
  },
  { key: "subject", heading: "About", cell: (one) => one.subject },
  { key: "text", heading: "What", cell: (one) => one.text },
  { key: "opened", heading: "Began", cell: (one) => <RelativeTime at={one.opened_at} /> },
  { key: "closed", heading: "Ended", cell: (one) => <RelativeTime at={one.closed_at} /> },
  { key: "told", heading: "Message sent", cell: (one) => <RelativeTime at={one.told_at} /> },
  { key: "count", heading: "Times", end: true, cell: (one) => one.count },
];

const DELIVERIES: readonly Column<Delivery>[] = [
  { key: "state", heading: "State", cell: (one) => <StateBadge of={one.state} /> },
  { key: "kind", heading: "Message", cell: (one) => one.kind },
  { key: "address", heading: "To", cell: (one) => one.address },
  { key: "made", heading: "Made", cell: (one) => <RelativeTime at={one.created_at} /> },
  { key: "tries", heading: "Tries", end: true, cell: (one) => one.tries.length },
  { key: "said", heading: "Answer", cell: (one) => one.tries.at(-1)?.said ?? "" },
];

export function Alarm() {
  const { alarmId } = useParams({ from: "/alarms/$alarmId" });
  const alarm = useQuery(alarmQuery(alarmId));
  const missing = (
    <Missing
      title="No such alarm"
      back={
        <Link to="/alarms" className="button">
          To all alarms
        </Link>
      }
    />
  );
  return (
    <QueryContent query={alarm} missing={missing}>
      {(found) => <AlarmPage alarm={found} />}
    </QueryContent>
  );
}

function AlarmPage({ alarm }: { alarm: OneAlarm }) {
  const incidents = useQuery(incidentsQuery(alarm.id));
  const deliveries = useQuery(deliveriesQuery(alarm.id));
  return (
    <Page title={alarm.name} about={<Link to="/alarms">all alarms</Link>} actions={<Actions of={alarm} />}>
      <Card>
        <Facts
          of={[
            ["Now", <IncidentBadge key="now" open={alarm.open} />],
            [
              "When",
              <span key="when" className="mono">
                {alarm.when}
              </span>,
            ],
            ["Severity", <SeverityBadge key="severity" of={alarm.severity} />],
            ["About", describeTarget(alarm) || "anything"],
            ["Notifies", [...alarm.to, ...alarm.via.map((name) => `addresses of ${name}`)].join(", ") || "nobody"],
            ["Between messages", `at least ${alarm.quiet}; repeated after ${alarm.again}`],
            ["Made", `${formatInstant(alarm.created_at)}${alarm.created_by ? ` by ${alarm.created_by}` : ""}`],
          ]}
        />
      </Card>
      <Card title="Incidents" flush>
        <QueryContent query={incidents}>
          {({ items }) =>
            items.length === 0 ? (
              <EmptyState title="Nothing yet" />
            ) : (
              <Table rows={items} columns={INCIDENTS} keyOf={(one) => String(one.id)} label="Incidents" />
            )
          }
        </QueryContent>
      </Card>
      <Card title="Messages" flush>
        <QueryContent query={deliveries}>
          {({ items }) =>
            items.length === 0 ? (
              <EmptyState title="Nothing yet" />
            ) : (
              <Table rows={items} columns={DELIVERIES} keyOf={(one) => one.id} label="Messages" />
            )
          }
        </QueryContent>
      </Card>
    </Page>
  );
}

function Actions({ of: alarm }: { of: OneAlarm }) {
  const [tested, setTested] = useState<TestAnswer | null>(null);
  const client = useQueryClient();
  const navigate = useNavigate();
  const act = useAction();
  const test = (): void => {
    void act(async () => {
      setTested(await testAlarm(alarm.id));
      await client.invalidateQueries({ queryKey: ["alarm", alarm.id] });
    });
  };
  return (
    <>
      {tested && (
        <span role="status" className="row small">
          {tested.deliveries.length === 0
            ? "it has no address"
            : tested.deliveries.map((one) => <StateBadge key={one.id} of={one.state} title={one.tries.at(-1)?.said} />)}
        </span>
      )}
      <button type="button" className="button" onClick={test}>
        Send a test
      </button>
      <ConfirmButton
        label="Remove"
        className="button danger"
        title={`Remove the alarm ${alarm.name}?`}
        question="It sends nothing more. Its incidents and messages are deleted too."
        yes="Remove it"
        act={async () => {
          await removeAlarm(alarm.id);
          await client.invalidateQueries({ queryKey: ["alarms"] });
          await navigate({ to: "/alarms" });
        }}
      />
    </>
  );
}
