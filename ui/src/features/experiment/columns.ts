// Chooses the metric columns of the results table: the usual ones first, and only those that have numbers.
import type { Entry } from "@/api/schema";

const KNOWN: readonly (readonly [string, string])[] = [
  ["inference_ms.p50", "Inference p50"],
  ["inference_ms.p99", "Inference p99"],
  ["highest_load.p50", "Load held"],
  ["e2e_ms.p50", "End to end p50"],
  ["e2e_ms.p99", "End to end p99"],
  ["throughput_per_s.p50", "Throughput"],
  ["error_rate.mean", "Errors"],
  ["goodput_per_s.p50", "Goodput"],
  ["output_tokens_per_s.p50", "Output tokens"],
  ["ttft_ms.p50", "First token p50"],
  ["ttft_ms.p99", "First token p99"],
  ["itl_ms.p50", "Between tokens p50"],
  ["cold_start_ms.p50", "Cold start"],
  ["memory_mib.p50", "Memory"],
  ["energy_j.p50", "Energy"],
];
// What does not fit on a screen beside the others is in the reports.
const MOST = 5;

export function chooseColumns(entries: readonly Entry[]): string[] {
  const present = new Set(entries.flatMap((entry) => Object.keys(entry.summary.estimates)));
  const own = entries
    .flatMap(({ summary }) => listOwnColumns(summary))
    .filter((key, place, all) => all.indexOf(key) === place);
  const known = KNOWN.map(([key]) => key).filter((key) => present.has(key));
  return (own.length > 0 ? own : known).slice(0, MOST);
}

/** A script's numbers have names of its own: the one that stands for it comes first, then the others as it tells them. */
function listOwnColumns({ headline, metrics, estimates }: Entry["summary"]): string[] {
  const told = Object.keys(metrics).map((name) => Object.keys(estimates).find((key) => key.startsWith(`${name}.`)));
  return [headline, ...told].filter((key): key is string => key != null && key in estimates);
}

export function columnHeading(key: string): string {
  return KNOWN.find(([name]) => name === key)?.[1] ?? key;
}
