// Badges for an alarm's severity and open incidents, and a description of what it watches.
import type { Alarm, Severity as Word } from "@/api/schema";
import { Badge, type Tone } from "@/components/Badge";

const TONES: Record<Word, Tone> = { info: "info", warning: "warn", critical: "bad" };

export function SeverityBadge({ of: severity }: { of: Word }) {
  return <Badge tone={TONES[severity]}>{severity}</Badge>;
}

export function IncidentBadge({ open }: { open: number }) {
  return open > 0 ? <Badge tone="bad">{open} open</Badge> : <Badge tone="good">nothing open</Badge>;
}

/** What an alarm is aimed at, in a few words; empty where it hears of everything. */
export function describeTarget(alarm: Alarm): string {
  const labels = Object.entries(alarm.labels).map(([key, value]) => `${key}=${value}`);
  return [alarm.recipe, ...labels, alarm.owner ? `by ${alarm.owner}` : null].filter(Boolean).join(", ");
}
