// Information about the server: version, current user and health.
import { useQuery } from "@tanstack/react-query";

import { setToken } from "@/api/token";
import { Badge } from "@/components/Badge";
import { Card, Facts } from "@/components/layout";
import { ServerLink } from "@/components/ServerLink";
import { QueryContent } from "@/components/states";

import { healthQuery } from "./queries";

export function About() {
  const health = useQuery(healthQuery());
  return (
    <div className="columns">
      <Card title="The server">
        <QueryContent query={health}>
          {(found) => (
            <Facts
              of={[
                ["Version", found.version],
                ["Address", location.origin],
                [
                  "API",
                  <ServerLink key="api" href="/docs">
                    documentation of the API
                  </ServerLink>,
                ],
                ...found.parts.map(
                  (part) =>
                    [
                      part.name,
                      <span key={part.name} className="row">
                        <Badge tone={part.ok ? "good" : "bad"}>{part.ok ? "works" : "fails"}</Badge>
                        {part.detail}
                      </span>,
                    ] as const,
                ),
              ]}
            />
          )}
        </QueryContent>
      </Card>
      <Card title="This browser">
        <div className="stack">
          <p>
            A token is stored until you close this tab, and sent only to this server. A login by link lasts for 30 days,
            or until you log out.
          </p>
          <div className="row">
            <button type="button" className="button" onClick={() => setToken("")}>
              Forget the token
            </button>
          </div>
        </div>
      </Card>
    </div>
  );
}
