// Shows a secret once, with a button to copy it.
import { type ReactNode, useState } from "react";

export function Secret({ secret, children }: { secret: string; children: ReactNode }) {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(secret);
    setCopied(true);
  };
  return (
    <div className="stack">
      <p>{children}</p>
      <pre className="code" tabIndex={0}>
        {secret}
      </pre>
      <div className="row">
        <button type="button" className="button" onClick={() => void copy()}>
          {copied ? "Copied" : "Copy"}
        </button>
      </div>
    </div>
  );
}
