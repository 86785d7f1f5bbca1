// The page of one schedule: when it is due, its recipe and its past runs.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";

import type { Fire, Schedule as OneSchedule } from "@/api/schema";
import { Badge, StateBadge, type Tone } from "@/components/Badge";
import { Card, Facts, Page } from "@/components/layout";
import { EmptyState, Missing, QueryContent } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { formatInstant } from "@/components/time";

import { Actions } from "./Actions";
import { firesQuery, scheduleQuery } from "./queries";

const TONES: Record<Fire["cause"], Tone> = { due: "good", late: "warn", skipped: "warn", now: "info", failed: "bad" };
const COLUMNS: readonly Column<Fire>[] = [
  { key: "due", heading: "Due", cell: (one) => formatInstant(one.due_at) },
  { key: "fired", heading: "Fired", cell: (one) => formatInstant(one.fired_at) },
  { key: "cause", heading: "Cause", cell: (one) => <Badge tone={TONES[one.cause]}>{one.cause}</Badge> },
  {
    key: "experiment",
    heading: "Experiment",
    cell: (one) =>
      one.experiment_id == null ? (
        <span className="muted">none</span>
      ) : (
        <Link to="/experiments/$experimentId" params={{ experimentId: one.experiment_id }} className="mono">
          {one.experiment_id}
        </Link>
      ),
  },
  { key: "missed", heading: "Missed times", end: true, cell: (one) => one.missed },
  { key: "reason", heading: "Reason", cell: (one) => one.reason },
];

export function Schedule() {
  const { scheduleId } = useParams({ from: "/schedules/$scheduleId" });
  const schedule = useQuery(scheduleQuery(scheduleId));
  const missing = (
    <Missing
      title="No such schedule"
      back={
        <Link to="/schedules" className="button">
          To all schedules
        </Link>
      }
    />
  );
  return (
    <QueryContent query={schedule} missing={missing}>
      {(found) => <SchedulePage schedule={found} />}
    </QueryContent>
  );
}

function SchedulePage({ schedule }: { schedule: OneSchedule }) {
  const navigate = useNavigate();
  const fires = useQuery(firesQuery(schedule.id));
  const { zone } = schedule.timing;
  return (
    <Page
      title={schedule.name}
      about={<Link to="/schedules">all schedules</Link>}
      actions={<Actions of={schedule} onRemoved={() => void navigate({ to: "/schedules" })} />}
    >
      <div className="columns">
        <Card title="When">
          <Facts
            of={[
              ["State", <StateBadge key="state" of={schedule.state} />],
              [
                "Times",
                <span key="cron" className="mono">
                  {schedule.timing.cron}
                </span>,
              ],
              ["Zone", zone],
              [
                "Next",
                schedule.next_at == null ? "none while paused" : <InBothZones at={schedule.next_at} zone={zone} />,
              ],
              ["Last", schedule.last_at == null ? "never" : <InBothZones at={schedule.last_at} zone={zone} />],
              ["Missed times", schedule.timing.missed],
              ["Fired, missed", `${schedule.fires}, ${schedule.missed}`],
              [
                "Made",
                `${formatInstant(schedule.created_at)}${schedule.created_by ? ` by ${schedule.created_by}` : ""}`,
              ],
            ]}
          />
        </Card>
        <Card title={`Recipe ${schedule.recipe}`}>
          <pre className="code" tabIndex={0}>
            {schedule.submission.text}
          </pre>
        </Card>
      </div>
      <Card title="Runs" flush>
        <QueryContent query={fires}>
          {({ items }) =>
            items.length === 0 ? (
              <EmptyState title="It has not run yet" />
            ) : (
              <Table
                rows={items}
                columns={COLUMNS}
                keyOf={(one) => `${one.due_at} ${one.fired_at} ${one.cause}`}
                label="Runs of this schedule"
              />
            )
          }
        </QueryContent>
      </Card>
    </Page>
  );
}

/** An instant as the reader's clock shows it, and beside it as that of the schedule's zone does where they differ. */
function InBothZones({ at, zone }: { at: string; zone: string }) {
  const [here, there] = [formatInstant(at), formatThere(at, zone)];
  return (
    <>
      {here}
      {there !== null && there !== here && <span className="muted"> ({there})</span>}
    </>
  );
}

function formatThere(at: string, zone: string): string | null {
  try {
    return formatInstant(at, zone);
  } catch (error) {
    // The server knows zones that this browser does not; their name stands above.
    if (error instanceof RangeError) return null;
    throw error;
  }
}
