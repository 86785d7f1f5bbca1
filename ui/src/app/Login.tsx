// The login page: the command that prints a login link, and a field for a token.
import { type SyntheticEvent, useState } from "react";
import { useQueryClient } from "@tanstack/react-query";

import { reconnectNow } from "@/api/live";
import { setToken, useRefusal } from "@/api/token";

export function Login() {
  const [text, setText] = useState("");
  const client = useQueryClient();
  const refusal = useRefusal();
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    setToken(text.trim());
    void client.resetQueries();
    reconnectNow();
  };
  return (
    <main className="login">
      <form className="card" onSubmit={submit}>
        <div className="body stack">
          <h1>Prony</h1>
          <p className="muted">This server needs a login. On its machine, print a link and open it here:</p>
          <pre className="code">prony server link</pre>
          <p className="muted">Or paste a token. An admin of the server makes one with</p>
          <pre className="code">prony tokens add NAME --role viewer</pre>
          {refusal && (
            <p className="failure" role="alert">
              The server refused this token: {refusal}. Check that it was copied whole, or ask for another.
            </p>
          )}
          <label className="field">
            <span>Token</span>
            <input
              type="password"
              autoComplete="off"
              spellCheck={false}
              placeholder="prony_…"
              value={text}
              onChange={(event) => setText(event.target.value)}
              required
            />
            <span className="help">Stored in this tab until you close it, and sent only to this server.</span>
          </label>
          <button type="submit" className="button primary">
            Enter
          </button>
        </div>
      </form>
    </main>
  );
}
