// How bad an alarm is, and whether what it waits for is so now.
import type { Severity as Word } from "@/api/schema";
import { Badge, type Tone } from "@/components/Badge";

const TONES: Record<Word, Tone> = { info: "info", warning: "warn", critical: "bad" };

export function Severity({ of: severity }: { of: Word }) {
  return <Badge tone={TONES[severity]}>{severity}</Badge>;
}

export function Now({ open }: { open: number }) {
  return open > 0 ? <Badge tone="bad">{open} not over</Badge> : <Badge tone="good">quiet</Badge>;
}
