import { expect, it } from "vitest";

import { formatMetric } from "./MetricName";

const TITLES = { "e2e_ms.p50": "End to end p50", decode_tok_s: "Decode", "error_rate.mean": "Errors" };

it.each([
  ["e2e_ms.p50", "End to end p50"],
  ["e2e_ms.p99.9", "End to end p99.9"],
  ["e2e_ms/GET /a.b.p99", "End to end GET /a.b p99"],
  ["decode_tok_s.p50", "Decode"],
  ["decode_tok_s.p99", "Decode p99"],
  ["rss_peak_mib.p50", "rss_peak p50"],
  ["error_rate/insert.mean", "Errors insert mean"],
  ["images_per_s.p50", "images_per_s p50"],
  ["val_accuracy", "val_accuracy"],
])("names %s %s", (key, title) => {
  expect(formatMetric(key, TITLES)).toBe(title);
});
