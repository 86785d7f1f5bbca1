// The settings of a comparison, kept in the URL.
import { useNavigate, useSearch } from "@tanstack/react-router";

import { DeferredTextField, SelectField } from "@/components/Field";

import type { CompareSearch } from "./search";

const RULES = [
  { value: "prony", label: "intervals and tests" },
  { value: "ai-factory", label: "fixed limits (ai-factory)" },
];

export function Terms() {
  const search = useSearch({ from: "/compare" });
  const navigate = useNavigate({ from: "/compare" });
  const change = (over: Partial<CompareSearch>): void => {
    void navigate({ search: (before) => ({ ...before, ...over }), replace: true });
  };
  return (
    <div className="fields">
      <DeferredTextField
        label="Smallest change that matters"
        value={search.threshold ?? ""}
        placeholder="3%"
        onChange={(text) => change({ threshold: text || undefined })}
      />
      <DeferredTextField
        label="Metrics that decide"
        value={search.metric ?? ""}
        placeholder="the headlines"
        onChange={(text) => change({ metric: text || undefined })}
      />
      <DeferredTextField
        label="Settings that may differ"
        value={search.across ?? ""}
        placeholder="engine, threads, …"
        onChange={(text) => change({ across: text || undefined })}
      />
      <SelectField
        label="Rule"
        value={search.rule ?? "prony"}
        options={RULES}
        onChange={(rule) => change({ rule: rule === "ai-factory" ? "ai-factory" : undefined })}
      />
      <label className="row tick">
        <input
          type="checkbox"
          checked={search.anyway ?? false}
          onChange={(event) => change({ anyway: event.target.checked || undefined })}
        />
        Compare what is not comparable, and say what differs
      </label>
    </div>
  );
}
