// The device page of an agent: what it does now, how steady it is over time, what would disturb a measurement there,
// and what it can run.
import "./device.css";

import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";

import type { Agent } from "@/api/schema";
import { describeDevice } from "@/components/agentFacts";
import { StateBadge } from "@/components/Badge";
import { Card, Facts, Labels, Page } from "@/components/layout";
import { Missing, QueryContent } from "@/components/states";
import { formatInstant, RelativeTime } from "@/components/time";

import { AgentAbilities } from "./AgentAbilities";
import { AgentJobs } from "./AgentJobs";
import { Calibrations } from "./Calibrations";
import { Conditions } from "./Conditions";
import { deviceHistoryQuery, deviceQuery } from "./queries";
import { Readings } from "./Readings";
import { Steadiness } from "./Steadiness";

const route = getRouteApi("/fleet/$agentId");

export function Device() {
  const { agentId } = route.useParams();
  const back = (
    <Link to="/fleet" className="button">
      All agents
    </Link>
  );
  return (
    <QueryContent
      query={useQuery(deviceQuery(agentId))}
      missing={<Missing title={`No agent ${agentId}`} back={back} />}
    >
      {(agent) => <DevicePage agent={agent} />}
    </QueryContent>
  );
}

function DevicePage({ agent }: { agent: Agent }) {
  const history = useQuery(deviceHistoryQuery(agent.id));
  return (
    <Page
      title={agent.name}
      heading={
        <>
          {agent.name} <StateBadge of={agent.state} title={agent.reason} />
        </>
      }
      about={describeDevice(agent) || "This agent does not report its device."}
      actions={
        <Link to="/fleet" className="button">
          All agents
        </Link>
      }
    >
      <div className="columns">
        <Card title="Agent">
          <AgentFacts agent={agent} />
        </Card>
        <Card title="Jobs" flush>
          <AgentJobs agentId={agent.id} />
        </Card>
      </div>
      <Card title="Now" label="Readings">
        <Readings agent={agent} />
      </Card>
      <Card title="Over time" label="Over time">
        <QueryContent query={history}>{(found) => <Steadiness history={found} name={agent.name} />}</QueryContent>
      </Card>
      <Card title="What would disturb a measurement" flush>
        <QueryContent query={history}>{(found) => <Conditions history={found} />}</QueryContent>
      </Card>
      <Card title="Calibrations" flush>
        <QueryContent query={history}>{(found) => <Calibrations calibrations={found.calibrations} />}</QueryContent>
      </Card>
      <AgentAbilities agent={agent} />
    </Page>
  );
}

function AgentFacts({ agent }: { agent: Agent }) {
  const { device, labels, target, version } = agent.capabilities;
  return (
    <Facts
      of={[
        ["Id", <span className="mono">{agent.id}</span>],
        ["Last seen", <RelativeTime at={agent.seen_at} />],
        ["Enrolled", formatInstant(agent.created_at)],
        ...(agent.reason ? [["Reason", agent.reason] as const] : []),
        ...(device ? [["System", describeSystem(device.software)] as const] : []),
        ["Prony", version || "–"],
        ...(target ? [["Takes jobs to", `${target.name} (${target.kind})`] as const] : []),
        ...(Object.keys(labels).length > 0 ? [["Labels", <Labels of={labels} />] as const] : []),
      ]}
    />
  );
}

type Software = NonNullable<Agent["capabilities"]["device"]>["software"];

function describeSystem({ os, os_version, kernel }: Software): string {
  return [[os, os_version].filter(Boolean).join(" "), kernel && `kernel ${kernel}`].filter(Boolean).join(", ");
}
