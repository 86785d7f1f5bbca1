// The result that a series is held against, as the cards of the baseline and of the fork show it.
import type { History } from "@/api/schema";
import { DASH, formatValue } from "@/components/number";
import { ResultLink } from "@/components/ResultLink";

import { formatChangeSize } from "./tones";

interface HeldResult {
  experiment_id: string;
  job_id: string;
  value?: number | null;
}

export function listResultFacts(history: History, held: HeldResult, against: number | null | undefined) {
  return [
    ["Result", <ResultLink key="of" of={held} />],
    ["Value", held.value == null ? DASH : formatValue(held.value, history.unit)],
    ["Newest against it", against == null ? DASH : formatChangeSize(against)],
  ] as const;
}
