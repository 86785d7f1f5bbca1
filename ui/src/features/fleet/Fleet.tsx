// The fleet page: agents, abilities, queue, jobs, failures and targets, and the button to enrol an agent.
import "./fleet.css";

import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";

import { agentsQuery, queueQuery } from "@/api/fleet";
import { Card, Page } from "@/components/layout";
import { EmptyState, QueryContent } from "@/components/states";
import { Tabs } from "@/components/Tabs";

import { Abilities } from "./Abilities";
import { Agents } from "./Agents";
import { EnrolDialog } from "./EnrolDialog";
import { Failures } from "./Failures";
import { Jobs } from "./Jobs";
import { Lots } from "./Lots";
import type { Part } from "./search";
import { Targets } from "./Targets";

const route = getRouteApi("/fleet");

export function Fleet() {
  const { part = "agents" } = route.useSearch();
  const navigate = route.useNavigate();
  const [enrols, setEnrols] = useState(false);
  const agents = useQuery(agentsQuery());
  const queue = useQuery(queueQuery());
  const waiting = queue.data?.waiting ?? 0;
  const enrol = (
    <button type="button" className="button primary" onClick={() => setEnrols(true)}>
      Enrol an agent
    </button>
  );
  const tabs: readonly { key: Part; label: string }[] = [
    { key: "agents", label: `Agents${agents.data ? ` (${agents.data.items.length})` : ""}` },
    { key: "abilities", label: "Who can run what" },
    { key: "queue", label: waiting ? `Queue (${waiting} waiting)` : "Queue" },
    { key: "jobs", label: "Jobs" },
    { key: "failures", label: "Failures" },
    { key: "targets", label: "Targets" },
  ];
  return (
    <Page
      title="Fleet"
      about="The devices that measure for this server, and the jobs that wait for them."
      actions={enrol}
    >
      <Tabs
        tabs={tabs}
        chosen={part}
        label="Parts of the fleet"
        onChoose={(key) => void navigate({ search: { part: key }, replace: true })}
      >
        <Card flush>
          {part === "jobs" ? (
            <Jobs />
          ) : part === "failures" ? (
            <Failures />
          ) : part === "targets" ? (
            <Targets />
          ) : part === "queue" ? (
            <QueryContent query={queue}>{(found) => <Lots lots={found.lots} />}</QueryContent>
          ) : (
            <QueryContent query={agents}>
              {({ items }) =>
                items.length === 0 ? (
                  <EmptyState title="No agent yet" actions={enrol}>
                    <p>
                      An agent is a process that offers the device it runs on. It opens no port: it asks this server for
                      work.
                    </p>
                  </EmptyState>
                ) : part === "agents" ? (
                  <Agents agents={items} />
                ) : (
                  <Abilities agents={items} />
                )
              }
            </QueryContent>
          )}
        </Card>
      </Tabs>
      {enrols && <EnrolDialog onClose={() => setEnrols(false)} />}
    </Page>
  );
}
