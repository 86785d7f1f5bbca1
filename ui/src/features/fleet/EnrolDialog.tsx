// The dialog that shows the command to enrol an agent, with a token that works once.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type SyntheticEvent, useId, useState } from "react";

import { api, readBody } from "@/api/client";
import { aboutQuery, agentsQuery } from "@/api/fleet";
import { Badge } from "@/components/Badge";
import { Dialog } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { Secret } from "@/components/Secret";
import { Failure, QueryContent } from "@/components/states";

import { buildCommand } from "./command";

export function EnrolDialog({ onClose }: { onClose: () => void }) {
  const about = useQuery(aboutQuery());
  const agents = useQuery(agentsQuery());
  const [secret, setSecret] = useState<string | null>(null);
  const [known, setKnown] = useState<ReadonlySet<string> | null>(null);
  // Those that are there when this opens are not news.
  if (known === null && agents.data) setKnown(new Set(agents.data.items.map((one) => one.id)));
  const come = agents.data?.items.filter((one) => known !== null && !known.has(one.id)) ?? [];
  return (
    <Dialog title="Enrol an agent" onClose={onClose}>
      <QueryContent query={about}>
        {({ asks_tokens }) => {
          if (asks_tokens && secret === null) return <TokenForm onMade={setSecret} />;
          return (
            <div className="stack">
              <Secret secret={buildCommand(location.origin, secret)}>
                {secret === null
                  ? "Run this on the device. On this machine the server needs no token."
                  : "Run this on the device, soon: the token enrols one agent, one time, within an hour, and is not shown again."}
              </Secret>
              <p role="status">
                {come.length === 0 ? (
                  <span className="muted">Waiting for the agent …</span>
                ) : (
                  <Badge tone="good">{come.map((one) => one.name).join(", ")} came</Badge>
                )}
              </p>
            </div>
          );
        }}
      </QueryContent>
    </Dialog>
  );
}

function TokenForm({ onMade }: { onMade: (secret: string) => void }) {
  const [name, setName] = useState("");
  const [error, setError] = useState<unknown>(null);
  const client = useQueryClient();
  const form = useId();
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    try {
      const made = await readBody(
        api.POST("/api/v1/tokens", { body: { name, role: "agent", once: true, expires_in_s: 3600 } }),
      );
      onMade(made.secret);
      await client.invalidateQueries({ queryKey: ["tokens"] });
    } catch (caught) {
      setError(caught);
    }
  };
  return (
    <form id={form} className="stack" onSubmit={(event) => void submit(event)}>
      <TextField
        label="What is the token for?"
        value={name}
        required
        placeholder="rack-7"
        help="letters, digits, dots and dashes"
        onChange={setName}
      />
      {error !== null && <Failure error={error} />}
      <div className="row">
        <button type="submit" className="button primary">
          Make a token and show the command
        </button>
      </div>
    </form>
  );
}
