// The matrix page: configurations as a heat map, with costs, power and the Pareto front.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";

import { api, readBody } from "@/api/client";
import { namesQuery } from "@/api/queries";
import type { MatrixReport } from "@/api/schema";
import { HeatMap } from "@/charts/HeatMap";
import { ParetoChart } from "@/charts/ParetoChart";
import { ExperimentPicker } from "@/components/ExperimentPicker";
import { DeferredTextField, SelectField } from "@/components/Field";
import { Card, Page } from "@/components/layout";
import { useMetricTitle } from "@/components/MetricName";
import { parseChoice, splitNames } from "@/components/search";
import { EmptyState, QueryContent } from "@/components/states";

import type { MatrixSearch } from "./search";
import { CostTable } from "./CostTable";

const AGAINST = [
  { value: "", label: "cost, else power" },
  { value: "cost", label: "cost" },
  { value: "power", label: "power" },
  { value: "energy", label: "energy per item" },
];

function matrixQuery({ ids = "", rows, columns, metric, against }: MatrixSearch) {
  const query = { ids, rows, columns, metric, against };
  return queryOptions({
    queryKey: ["matrix", query],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/matrix", { params: { query }, signal })),
    enabled: ids !== "",
  });
}

export function Matrix() {
  const search = useSearch({ from: "/matrix" });
  const navigate = useNavigate({ from: "/matrix" });
  const matrix = useQuery(matrixQuery(search));
  const axes = useQuery(namesQuery()).data?.axes ?? [];
  const change = (over: Partial<MatrixSearch>): void =>
    void navigate({ search: (before) => ({ ...before, ...over }), replace: true });
  return (
    <Page
      title="Matrix"
      about="Configurations in rows and columns that you choose, with the cost and the power of each."
    >
      <Card>
        <div className="stack">
          <ExperimentPicker
            label="Experiments"
            chosen={splitNames(search.ids)}
            onChange={(ids) => change({ ids: ids.join(",") || undefined })}
          />
          <div className="fields">
            <DeferredTextField
              label="Rows"
              value={search.rows ?? "device"}
              suggestions={axes}
              onChange={(rows) => change({ rows: rows || undefined })}
            />
            <DeferredTextField
              label="Columns"
              value={search.columns ?? "engine"}
              suggestions={axes}
              onChange={(columns) => change({ columns: columns || undefined })}
            />
            <DeferredTextField
              label="Metric"
              value={search.metric ?? ""}
              placeholder="the headline"
              onChange={(metric) => change({ metric: metric || undefined })}
            />
            <SelectField
              label="Pareto front against"
              value={search.against ?? ""}
              options={AGAINST}
              onChange={(to) => change({ against: parseChoice(to, ["cost", "power", "energy"]) })}
            />
          </div>
        </div>
      </Card>
      {search.ids === undefined ? (
        <EmptyState title="Choose an experiment">
          <p>
            One with a matrix, or several from different machines. Rows and columns can be any setting, such as threads
            or labels.rack.
          </p>
        </EmptyState>
      ) : (
        <QueryContent query={matrix} what="Comparing configurations">
          {(report) => <Report of={report} />}
        </QueryContent>
      )}
    </Page>
  );
}

function Report({ of: report }: { of: MatrixReport }) {
  const titleOf = useMetricTitle();
  // What is said of prices and energy stands below, beside them.
  const below = new Set(report.cells.flatMap((cell) => cell.worths.map((worth) => `${worth.note}.`)));
  return (
    <>
      <Card title={`${titleOf(report.metric)} by ${report.terms.rows} and ${report.terms.columns}`} flush>
        <HeatMap report={report} />
        <div className="body stack">
          <p className="muted small">
            The stronger the tint, the worse. ★ marks the best only if its interval overlaps no other.
          </p>
          {report.notes
            .filter((note) => !below.has(note))
            .map((note) => (
              <p key={note}>{note}</p>
            ))}
        </div>
      </Card>
      {report.pareto.length > 1 && (
        <Card title="Pareto front">
          <ParetoChart report={report} />
        </Card>
      )}
      <CostTable of={report} />
    </>
  );
}
