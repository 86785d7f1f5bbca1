// The reports page: shows an experiment's report and downloads it in any format.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";

import { downloadFile, sendRequest } from "@/api/client";
import { recentQuery } from "@/api/queries";
import { StateBadge } from "@/components/Badge";
import { ExperimentPicker } from "@/components/ExperimentPicker";
import { Card, Page } from "@/components/layout";
import { splitNames } from "@/components/search";
import { EmptyState, QueryContent } from "@/components/states";
import { RelativeTime } from "@/components/time";
import { useAction } from "@/components/toasts";

import { type Format, FORMATS } from "./formats";
import { ReportFrame } from "./ReportFrame";

function pageQuery(id: string) {
  return queryOptions({
    queryKey: ["experiment", id, "report"],
    queryFn: async ({ signal }) =>
      (await sendRequest(new Request(new URL(reportPath(id, "html"), location.origin), { signal }))).text(),
  });
}

export function Reports() {
  const { of } = useSearch({ from: "/reports" });
  const navigate = useNavigate({ from: "/reports" });
  return (
    <Page title="Reports" about="Everything about an experiment in one document.">
      <Card>
        <ExperimentPicker
          label="Experiment"
          most={1}
          chosen={splitNames(of)}
          onChange={([id]) => void navigate({ search: { of: id } })}
        />
      </Card>
      {of === undefined ? <NewestExperiments /> : <Report id={of} />}
    </Page>
  );
}

function NewestExperiments() {
  const recent = useQuery(recentQuery());
  return (
    <Card title="Newest experiments" flush>
      <QueryContent query={recent}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="Nothing to report yet">
              <p>Run a recipe, and its report appears here.</p>
            </EmptyState>
          ) : (
            <ul className="lines">
              {items.slice(0, 12).map(({ experiment }) => (
                <li key={experiment.id}>
                  <span className="row">
                    <Link to="/reports" search={{ of: experiment.id }}>
                      <b>{experiment.name}</b> <span className="mono muted">{experiment.id}</span>
                    </Link>
                    <StateBadge of={experiment.state} />
                    <span className="muted">
                      <RelativeTime at={experiment.created_at} />
                    </span>
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </QueryContent>
    </Card>
  );
}

function Report({ id }: { id: string }) {
  const page = useQuery(pageQuery(id));
  const act = useAction();
  const save = ({ format, suffix }: Format): void => {
    void act(() => downloadFile(reportPath(id, format), `${id}${suffix}`), `${id}${suffix} is saved`);
  };
  return (
    <Card
      title={
        <Link to="/experiments/$experimentId" params={{ experimentId: id }} className="mono">
          {id}
        </Link>
      }
      flush
      actions={FORMATS.map((one) => (
        <button key={one.format} type="button" className="button slim" title={one.about} onClick={() => save(one)}>
          {one.label}
        </button>
      ))}
    >
      <QueryContent query={page} what="Writing the report">
        {(text) => <ReportFrame text={text} title={`Report of ${id}`} />}
      </QueryContent>
    </Card>
  );
}

function reportPath(id: string, format: string): string {
  return `/api/v1/experiments/${encodeURIComponent(id)}/report?format=${format}`;
}
