// Names metrics as people call them; the key of the API is told on hover.
import { useQuery } from "@tanstack/react-query";

import { namesQuery } from "@/api/queries";

type Titles = Readonly<Record<string, string>>;

const KEY = /^([^/.]+)(?:\/(.*?))?(?:\.(p50|mean|min|max|sd|p90|p95|p99|p99\.9))?$/;
const UNIT = /(?<=.)(?<!_per)_(gb_s|mb_s|tflops|tops|ns|us|ms|s|mib|j|w)$/;

/** Return the title of a key such as `e2e_ms/insert.p99`: the server's, or else its parts without the unit. */
export function formatMetric(key: string, titles: Titles): string {
  const [, metric, operation, statistic] = KEY.exec(key) ?? [];
  if (titles[key] !== undefined || metric === undefined) return titles[key] ?? key;
  const isUsual = statistic === "p50" || statistic === "mean";
  const title = titles[metric] ?? titles[`${metric}.p50`]?.replace(/ p50$/, "") ?? titles[`${metric}.mean`];
  const shown = isUsual && titles[metric] !== undefined ? undefined : statistic;
  return [title ?? metric.replace(UNIT, ""), operation, shown].filter(Boolean).join(" ");
}

/** Return what titles a metric. */
export function useMetricTitle(): (key: string) => string {
  const names = useQuery(namesQuery());
  const titles = names.data?.metric_titles ?? {};
  return (key) => formatMetric(key, titles);
}

export function MetricName({ of: key }: { of: string }) {
  const titleOf = useMetricTitle();
  return <span title={key}>{titleOf(key)}</span>;
}
