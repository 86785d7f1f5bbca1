// Shows a secret once, with a button to copy it.
import type { ReactNode } from "react";

import { CopyButton } from "./CopyButton";

export function Secret({ secret, children }: { secret: string; children: ReactNode }) {
  return (
    <div className="stack">
      <p>{children}</p>
      <pre className="code" tabIndex={0}>
        {secret}
      </pre>
      <div className="row">
        <CopyButton text={secret} />
      </div>
    </div>
  );
}
