// A bar of how many jobs are in each state, with the same in words.
import { stateTone, type Tone } from "./Badge";

// In the order in which they stand in the bar.
const STATES = ["complete", "partial", "failed", "cancelled", "leased", "waiting"] as const;

export type Counts = Partial<Record<string, number>>;

export function countEnded(counts: Counts): number {
  return STATES.slice(0, 4).reduce((sum, state) => sum + (counts[state] ?? 0), 0);
}

export function describeCounts(counts: Counts): string {
  return STATES.flatMap((state) => {
    const count = counts[state] ?? 0;
    return count > 0 ? [`${count} ${state === "leased" ? "running" : state}`] : [];
  }).join(", ");
}

/** An experiment that is open runs while an agent has a job of it; before that, and between two jobs, it waits. */
export function shownState(state: string, counts: Counts): string {
  if (state !== "running" && state !== "pending") return state;
  return (counts.leased ?? 0) > 0 ? "running" : "waiting";
}

export function Progress({ counts, total }: { counts: Counts; total: number }) {
  const parts = STATES.flatMap((state): { state: string; tone: Tone; count: number }[] => {
    const count = counts[state] ?? 0;
    return count > 0 && state !== "waiting" ? [{ state, tone: stateTone(state), count }] : [];
  });
  return (
    <div
      className="bar"
      role="img"
      aria-label={`of ${total} jobs: ${describeCounts(counts)}`}
      title={describeCounts(counts)}
    >
      {parts.map(({ state, tone, count }) => (
        <i key={state} className={tone} style={{ width: `${(100 * count) / Math.max(total, 1)}%` }} />
      ))}
    </div>
  );
}
