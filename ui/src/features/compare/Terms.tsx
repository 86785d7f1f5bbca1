// The settings of a comparison, kept in the URL.
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";

import { namesQuery } from "@/api/queries";
import { DeferredTextField, SelectField } from "@/components/Field";

import type { CompareSearch, Rule } from "./search";

export function Terms() {
  const search = useSearch({ from: "/compare" });
  const navigate = useNavigate({ from: "/compare" });
  // The first is the server's own, and the one that holds where none is asked for.
  const [own, ...others] = useQuery(namesQuery()).data?.comparison_rules ?? [];
  const rules = [
    ...(own ? [{ value: own.name, label: own.about }] : []),
    ...others.map(({ name, about }) => ({ value: name, label: `${about} (${name})` })),
  ];
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
        value={search.rule ?? own?.name ?? ""}
        options={rules}
        onChange={(rule) => change({ rule: rule === own?.name ? undefined : (rule as Rule) })}
      />
      <label className="row tick">
        <input
          type="checkbox"
          checked={search.anyway ?? false}
          onChange={(event) => change({ anyway: event.target.checked || undefined })}
        />
        Compare anyway and list the differences
      </label>
    </div>
  );
}
