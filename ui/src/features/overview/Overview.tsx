// What runs now, what changed, and what was measured last.
import { useQuery } from "@tanstack/react-query";

import { statsQuery } from "@/api/queries";
import { Card, Facts, Page } from "@/components/layout";
import { Shown } from "@/components/states";

export function Overview() {
  const stats = useQuery(statsQuery());
  return (
    <Page title="Overview">
      <Card title="The server">
        <Shown query={stats}>
          {(found) => (
            <Facts
              of={[
                ["Experiments", found.experiments],
                ["Ended in the last hour", found.ended_last_hour],
                ...Object.entries(found.agents).map(([state, count]) => [`Agents ${state}`, count] as const),
              ]}
            />
          )}
        </Shown>
      </Card>
    </Page>
  );
}
