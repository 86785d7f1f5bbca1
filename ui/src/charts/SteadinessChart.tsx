// A chart of the canary and the noise of a device, result after result; clicking one calls `onPick` with it.
import { useCallback, useMemo } from "react";

import type { DeviceHistory } from "@/api/schema";

import { Chart } from "./Chart";
import type { PickedResult } from "./options/history";
import { drawSteadiness } from "./options/steadiness";
import { useChartTheme } from "./theme";

interface Props {
  results: DeviceHistory["results"];
  label: string;
  onPick: (result: PickedResult) => void;
}

export function SteadinessChart({ results, label, onPick }: Props) {
  const theme = useChartTheme();
  const drawing = useMemo(() => drawSteadiness(results, theme), [results, theme]);
  const pick = useCallback(
    (data: unknown) => {
      if (typeof data === "object" && data !== null && "experimentId" in data) onPick(data as PickedResult);
    },
    [onPick],
  );
  return <Chart {...drawing} label={label} onPick={pick} />;
}
