// A table of the server's tokens; tokens are made and revoked here.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import type { Token } from "@/api/schema";
import { Badge } from "@/components/Badge";
import { ConfirmButton } from "@/components/Dialog";
import { Card } from "@/components/layout";
import { EmptyState, QueryContent } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { formatInstant, RelativeTime, useNow } from "@/components/time";

import { AddToken } from "./AddToken";
import { revokeToken, tokensQuery } from "./queries";

export function Tokens() {
  const tokens = useQuery(tokensQuery());
  const [asked, setAsked] = useState(false);
  const add = (
    <button type="button" className="button primary slim" onClick={() => setAsked(true)}>
      Make a token
    </button>
  );
  return (
    <Card title="Tokens" flush actions={add}>
      <QueryContent query={tokens}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="No token yet" actions={add}>
              <p>
                Every request needs a token. Commands on the server's machine with the same home use the owner's token
                automatically.
              </p>
            </EmptyState>
          ) : (
            <Table rows={items} columns={COLUMNS} keyOf={(one) => one.id} label="Tokens" />
          )
        }
      </QueryContent>
      {asked && <AddToken onClose={() => setAsked(false)} />}
    </Card>
  );
}

const COLUMNS: readonly Column<Token>[] = [
  {
    key: "name",
    heading: "Name",
    cell: (one) => (
      <>
        <b>{one.name}</b> <span className="mono muted">{one.id}</span>
      </>
    ),
  },
  { key: "role", heading: "Role", cell: (one) => (one.once ? `${one.role}, to enrol once` : one.role) },
  { key: "state", heading: "State", cell: (one) => <TokenStatus of={one} /> },
  { key: "made", heading: "Made", cell: (one) => <RelativeTime at={one.created_at} /> },
  { key: "used", heading: "Last used", cell: (one) => <RelativeTime at={one.last_used_at} /> },
  {
    key: "expires",
    heading: "Expires",
    cell: (one) => (one.expires_at == null ? <span className="muted">never</span> : formatInstant(one.expires_at)),
  },
  { key: "act", heading: <span className="unseen">Actions</span>, end: true, cell: (one) => <RevokeButton of={one} /> },
];

function TokenStatus({ of: token }: { of: Token }) {
  const now = useNow();
  if (token.revoked_at != null) return <Badge tone="quiet">revoked</Badge>;
  if (token.expires_at != null && new Date(token.expires_at).getTime() < now)
    return <Badge tone="quiet">expired</Badge>;
  return <Badge tone="good">valid</Badge>;
}

function RevokeButton({ of: token }: { of: Token }) {
  const client = useQueryClient();
  if (token.revoked_at != null) return null;
  return (
    <ConfirmButton
      label="Revoke"
      className="button slim danger"
      title={`Revoke the token ${token.name}?`}
      question="It stops working within 5 seconds. This cannot be undone."
      yes="Revoke it"
      act={async () => {
        await revokeToken(token.id);
        await client.invalidateQueries({ queryKey: ["tokens"] });
      }}
    />
  );
}
