// An experiment in, its report out: to look at here, and to take away in every format.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";

import { asked, download } from "@/api/client";
import { recentQuery } from "@/api/queries";
import { State } from "@/components/Badge";
import { ExperimentPicker } from "@/components/ExperimentPicker";
import { Card, Page } from "@/components/layout";
import { listed } from "@/components/search";
import { Empty, Shown } from "@/components/states";
import { Ago } from "@/components/time";
import { useAct } from "@/components/toasts";

import { FORMATS, type Format } from "./formats";
import { Frame } from "./Frame";

function pageQuery(id: string) {
  return queryOptions({
    queryKey: ["experiment", id, "report"],
    queryFn: async ({ signal }) => (await asked(new Request(new URL(pathOf(id, "html"), location.origin), { signal }))).text(),
  });
}

export function Reports() {
  const { of } = useSearch({ from: "/reports" });
  const navigate = useNavigate({ from: "/reports" });
  return (
    <Page title="Reports" about="All that is known of an experiment, in one document.">
      <Card>
        <ExperimentPicker label="Experiment" most={1} chosen={listed(of)} onChange={([id]) => void navigate({ search: { of: id } })} />
      </Card>
      {of === undefined ? <Newest /> : <Report id={of} />}
    </Page>
  );
}

function Newest() {
  const recent = useQuery(recentQuery());
  return (
    <Card title="Newest experiments" flush>
      <Shown query={recent}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="Nothing to report yet">
              <p>Run a recipe, and its report is here.</p>
            </Empty>
          ) : (
            <ul className="lines">
              {items.slice(0, 12).map(({ experiment }) => (
                <li key={experiment.id}>
                  <span className="row">
                    <Link to="/reports" search={{ of: experiment.id }}>
                      <b>{experiment.name}</b> <span className="mono muted">{experiment.id}</span>
                    </Link>
                    <State of={experiment.state} />
                    <span className="muted">
                      <Ago at={experiment.created_at} />
                    </span>
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
    </Card>
  );
}

function Report({ id }: { id: string }) {
  const page = useQuery(pageQuery(id));
  const act = useAct();
  const save = ({ format, suffix }: Format): void => {
    void act(() => download(pathOf(id, format), `${id}${suffix}`), `${id}${suffix} is saved`);
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
      <Shown query={page} what="Writing the report">
        {(text) => <Frame text={text} title={`Report of ${id}`} />}
      </Shown>
    </Card>
  );
}

function pathOf(id: string, format: string): string {
  return `/api/v1/experiments/${encodeURIComponent(id)}/report?format=${format}`;
}
