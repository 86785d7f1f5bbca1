// Says over a page that the server does not answer, how old the numbers are, and that it is asked again.
import { reconnectNow, useOutage } from "@/api/live";
import { formatClock } from "@/components/time";

export function OutageBanner() {
  const outage = useOutage();
  if (!outage) return null;
  return (
    <div className="outage" role="alert">
      <span>
        <strong>The server does not answer.</strong> This page shows what was known at {formatClock(outage.since)}. It
        tries again by itself and goes on when the server is back.
      </span>
      <button type="button" className="button slim" onClick={reconnectNow}>
        Try now
      </button>
    </div>
  );
}
