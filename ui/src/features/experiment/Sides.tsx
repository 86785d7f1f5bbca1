// The conclusion of a duet, with a link to the whole comparison.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { Badge, stateTone } from "@/components/Badge";
import { Card } from "@/components/layout";
import { QueryContent } from "@/components/states";

import { sidesQuery } from "./queries";

export function Sides({ experimentId }: { experimentId: string }) {
  const comparison = useQuery(sidesQuery(experimentId));
  return (
    <Card
      title="The two sides"
      actions={
        <Link to="/compare" search={{ of: experimentId }}>
          Full comparison
        </Link>
      }
    >
      <QueryContent query={comparison} what="Comparing the sides">
        {(found) =>
          found === null ? (
            <p className="muted">They are compared when both have results.</p>
          ) : (
            <p className="row">
              <Badge tone={stateTone(found.conclusion)}>{found.conclusion}</Badge>
              <strong>{found.sentence}</strong>
            </p>
          )
        }
      </QueryContent>
    </Card>
  );
}
