// The list of schedules: what each runs and when; new ones are added here.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import type { Schedule } from "@/api/schema";
import { StateBadge } from "@/components/Badge";
import { Card, Page } from "@/components/layout";
import { EmptyState, QueryContent } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { RelativeTime } from "@/components/time";

import { Actions } from "./Actions";
import { AddSchedule } from "./AddSchedule";
import { schedulesQuery } from "./queries";

const COLUMNS: readonly Column<Schedule>[] = [
  {
    key: "name",
    heading: "Schedule",
    cell: (one) => (
      <Link to="/schedules/$scheduleId" params={{ scheduleId: one.id }}>
        <b>{one.name}</b>
      </Link>
    ),
  },
  { key: "recipe", heading: "Recipe", cell: (one) => one.recipe },
  {
    key: "when",
    heading: "When",
    cell: (one) => (
      <>
        <span className="mono">{one.timing.cron}</span> <span className="muted">{one.timing.zone}</span>
      </>
    ),
  },
  { key: "state", heading: "State", cell: (one) => <StateBadge of={one.state} /> },
  { key: "next", heading: "Next", cell: (one) => <RelativeTime at={one.next_at} /> },
  { key: "last", heading: "Last", cell: (one) => <RelativeTime at={one.last_at} /> },
  { key: "fires", heading: "Fired", end: true, cell: (one) => one.fires },
  {
    key: "missed",
    heading: "Missed",
    end: true,
    cell: (one) => (one.missed > 0 ? <span className="ink-warn">{one.missed}</span> : 0),
  },
  { key: "act", heading: <span className="unseen">Actions</span>, cell: (one) => <Actions of={one} /> },
];

export function Schedules() {
  const schedules = useQuery(schedulesQuery());
  const [asked, setAsked] = useState(false);
  const add = (
    <button type="button" className="button primary" onClick={() => setAsked(true)}>
      Add a schedule
    </button>
  );
  return (
    <Page title="Schedules" about="Recipes that the server submits at fixed times." actions={add}>
      <Card flush label="Schedules">
        <QueryContent query={schedules}>
          {({ items }) =>
            items.length === 0 ? (
              <EmptyState title="No schedule yet" actions={add}>
                <p>Every night, every Monday or every ten minutes: each run is a normal experiment.</p>
              </EmptyState>
            ) : (
              <Table rows={items} columns={COLUMNS} keyOf={(one) => one.id} label="Schedules" />
            )
          }
        </QueryContent>
      </Card>
      {asked && <AddSchedule onClose={() => setAsked(false)} />}
    </Page>
  );
}
