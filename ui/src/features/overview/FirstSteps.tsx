// What an empty server shows: what Prony does, the next steps, and a button that runs the demo.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { api, readBody } from "@/api/client";
import { aboutQuery } from "@/api/fleet";
import type { Glance } from "@/api/schema";
import { ToneShape } from "@/components/Badge";
import { Card, Page } from "@/components/layout";
import { Failure } from "@/components/states";

import { examplesQuery } from "./queries";
import { Troubles } from "./Troubles";

const DEMO = "quickstart";

export function FirstSteps({ glance }: { glance: Glance }) {
  const { agents } = glance;
  const examples = useQuery(examplesQuery());
  const navigate = useNavigate();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const demo = examples.data?.items.find((example) => example.name === DEMO) ?? examples.data?.items[0];
  const start = async (): Promise<void> => {
    if (!demo) return;
    setBusy(true);
    try {
      const body = { text: demo.text, name: demo.file, overrides: [] };
      const made = await readBody(api.POST("/api/v1/experiments", { body }));
      await navigate({ to: "/experiments/$experimentId", params: { experimentId: made.experiment.id } });
    } catch (caught) {
      setError(caught);
      setBusy(false);
    }
  };
  return (
    <Page
      title="Overview"
      heading="Welcome to Prony"
      about="You write one recipe; Prony runs it on all your machines and returns numbers you can defend."
    >
      {glance.troubles.length > 0 && <Troubles glance={glance} />}
      <ol className="steps">
        <li>
          <Card title={<Step number={1} done={agents > 0} text="A machine that measures" />}>
            {agents > 0 ? (
              <p>{agents === 1 ? "One agent is" : `${agents} agents are`} connected and can work.</p>
            ) : (
              <div className="stack">
                <FirstAgent />
                <p className="muted">This page shows the agent when it connects.</p>
              </div>
            )}
          </Card>
        </li>
        <li>
          <Card title={<Step number={2} done={false} text="A first measurement" />}>
            <div className="stack">
              <p>
                The demo measures the same work on two engines, in fresh processes, cold and warm. It takes a minute or
                two{agents > 0 ? "." : " once an agent is connected."}
              </p>
              {demo && (
                <details>
                  <summary>Its recipe</summary>
                  <pre className="code" tabIndex={0} aria-label="The recipe of the demo">
                    {demo.text}
                  </pre>
                </details>
              )}
              <div className="row">
                <button type="button" className="button primary" disabled={!demo || busy} onClick={() => void start()}>
                  {busy ? "Submitting …" : "Run the demo"}
                </button>
              </div>
              {(error ?? examples.error) !== null && <Failure error={error ?? examples.error} />}
            </div>
          </Card>
        </li>
        <li>
          <Card title={<Step number={3} done={false} text="Numbers with their reasons" />}>
            <p>
              Each number comes with its interval, its raw samples, the state of the machine, and a verdict on whether
              it may be quoted. Prony keeps the history, and says when something got worse and how sure it is.
            </p>
          </Card>
        </li>
      </ol>
    </Page>
  );
}

/** The owner's own token is used only at an address of this machine; elsewhere an agent enrols with one of its own. */
function FirstAgent() {
  const about = useQuery(aboutQuery());
  const needsToken = about.data?.asks_tokens !== false;
  const isHere = isLoopback(location.hostname);
  const isEnrolled = needsToken && !isHere;
  const command = `prony agent start --server ${location.origin}`;
  return (
    <>
      <p>
        An agent offers a machine to this server.{" "}
        {isEnrolled ? (
          <>
            Make a token with <Link to="/fleet">Fleet, Enrol an agent</Link>, save it as the file enrol.token on the
            machine, and start the agent there:
          </>
        ) : isHere ? (
          "Start one on the server's own machine, as the same user:"
        ) : (
          "Start one on any machine that reaches it:"
        )}
      </p>
      <pre className="code" tabIndex={0} aria-label="The command that starts an agent">
        {isEnrolled ? `${command} --token-file enrol.token` : command}
      </pre>
      {needsToken && isHere && (
        <p className="muted">
          On other machines an agent needs a token: see <Link to="/fleet">Fleet, Enrol an agent</Link>.
        </p>
      )}
    </>
  );
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127(\.\d+){3}$/.test(host);
}

function Step({ number, done, text }: { number: number; done: boolean; text: string }) {
  return (
    <span className="step">
      <span className={done ? "mark tone-good" : "mark tone-info"}>{done ? <ToneShape tone="good" /> : number}</span>
      {text}
      {done && <span className="unseen">: done</span>}
    </span>
  );
}
