// The conclusion of a duet, with a link to the whole comparison.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import type { Match } from "@/api/schema";
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
            found.matches.map((match) => <Headlines key={match.title} of={match} />)
          )
        }
      </QueryContent>
    </Card>
  );
}

function Headlines({ of: match }: { of: Match }) {
  const headlines = match.contrasts.filter(({ role }) => role === "headline");
  return (
    <div className="stack">
      <p className="muted">{match.title}</p>
      <ul className="reasons" aria-label="What each headline came to">
        {headlines.map((one) => (
          <li key={one.key} className="reason">
            <Badge tone={stateTone(one.conclusion)}>{one.conclusion}</Badge>
            {/* The title stands above all of them. */}
            <span>{one.sentence.replace(`${match.title}: `, "")}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
