// The dialog that shows the command to enrol an agent, with a token that works once.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { api, readBody } from "@/api/client";
import { aboutQuery, agentsQuery } from "@/api/fleet";
import { Badge } from "@/components/Badge";
import { Dialog, FormDialog } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { Secret } from "@/components/Secret";
import { QueryContent } from "@/components/states";

import { buildCommand } from "./command";

const TITLE = "Enrol an agent";

export function EnrolDialog({ onClose }: { onClose: () => void }) {
  const about = useQuery(aboutQuery());
  const agents = useQuery(agentsQuery());
  const [secret, setSecret] = useState<string | null>(null);
  const [known, setKnown] = useState<ReadonlySet<string> | null>(null);
  // Those that are there when this opens are not news.
  if (known === null && agents.data) setKnown(new Set(agents.data.items.map((one) => one.id)));
  const come = agents.data?.items.filter((one) => known !== null && !known.has(one.id)) ?? [];
  if (about.data?.asks_tokens && secret === null) return <TokenForm onClose={onClose} onMade={setSecret} />;
  return (
    <Dialog title={TITLE} onClose={onClose}>
      <QueryContent query={about}>
        {() => (
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
        )}
      </QueryContent>
    </Dialog>
  );
}

function TokenForm({ onClose, onMade }: { onClose: () => void; onMade: (secret: string) => void }) {
  const [name, setName] = useState("");
  const client = useQueryClient();
  const act = async (): Promise<void> => {
    const made = await readBody(
      api.POST("/api/v1/tokens", { body: { name, role: "agent", once: true, expires_in_s: 3600 } }),
    );
    onMade(made.secret);
    await client.invalidateQueries({ queryKey: ["tokens"] });
  };
  return (
    <FormDialog title={TITLE} yes="Make a token and show the command" onClose={onClose} act={act}>
      <TextField
        label="What is the token for?"
        value={name}
        required
        placeholder="rack-7"
        help="letters, digits, dots and dashes"
        onChange={setName}
      />
    </FormDialog>
  );
}
