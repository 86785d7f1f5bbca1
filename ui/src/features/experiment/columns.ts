// Entries in, which numbers stand in their table out: those that most people look for first, and only where there are any.
import type { Entry } from "@/api/schema";

const KNOWN: readonly (readonly [string, string])[] = [
  ["inference_ms.p50", "Inference p50"],
  ["highest_load", "Load held"],
  ["e2e_ms.p50", "End to end p50"],
  ["e2e_ms.p99", "End to end p99"],
  ["throughput_per_s", "Throughput"],
  ["error_rate", "Errors"],
  ["goodput_per_s", "Goodput"],
  ["output_tokens_per_s", "Output tokens"],
  ["ttft_ms.p50", "First token p50"],
  ["ttft_ms.p99", "First token p99"],
  ["itl_ms.p50", "Between tokens p50"],
  ["inference_ms.p99", "Inference p99"],
  ["load_ms", "Load"],
  ["first_inference_ms", "First inference"],
  ["memory_mib", "Memory"],
  ["energy_j", "Energy"],
];
const MOST = 8;

export function columnsOf(entries: readonly Entry[]): string[] {
  const present = new Set(entries.flatMap((entry) => Object.keys(entry.summary.estimates)));
  const known = KNOWN.map(([key]) => key).filter((key) => present.has(key));
  // A script's numbers have names of their own.
  const own = [...present].filter((key) => !KNOWN.some(([name]) => name === key)).sort();
  return (known.length > 0 ? known : own).slice(0, MOST);
}

export function headingOf(key: string): string {
  return KNOWN.find(([name]) => name === key)?.[1] ?? key;
}
