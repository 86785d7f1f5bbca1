// What the kind of a workload shows of one job beside its numbers: sections of facts and tables.
import { useQuery } from "@tanstack/react-query";

import type { JobSections } from "@/api/schema";
import { Card, Facts } from "@/components/layout";
import { EmptyState, QueryContent } from "@/components/states";

import { JobChooser } from "./JobChooser";
import { sectionsQuery } from "./queries";

type Section = JobSections["sections"][number];
type SectionTable = Section["tables"][number];

export function Details({ experimentId }: { experimentId: string }) {
  return (
    <JobChooser experimentId={experimentId}>
      {(jobId) => <Sections experimentId={experimentId} jobId={jobId} />}
    </JobChooser>
  );
}

function Sections({ experimentId, jobId }: { experimentId: string; jobId: string }) {
  const query = useQuery(sectionsQuery(experimentId, jobId));
  return (
    <QueryContent query={query} what="Loading the details">
      {({ sections, kind }) => {
        const told = sections.filter((one) => one.note !== "" || one.facts.length > 0 || one.tables.length > 0);
        if (told.length === 0)
          return (
            <Card>
              <EmptyState title="No more details">
                <p>The kind {kind} shows nothing beside its numbers.</p>
              </EmptyState>
            </Card>
          );
        return (
          <div className="stack wide">
            {told.map((section) => (
              <SectionCard key={section.title} section={section} />
            ))}
          </div>
        );
      }}
    </QueryContent>
  );
}

function SectionCard({ section }: { section: Section }) {
  const { title, note, facts, tables } = section;
  const [first] = tables;
  // A table alone fills its card from side to side.
  if (first && tables.length === 1 && note === "" && facts.length === 0)
    return (
      <Card title={title} flush>
        <TextTable of={first} label={title} />
      </Card>
    );
  return (
    <Card title={title}>
      <div className="stack wide">
        {note !== "" && <p>{note}</p>}
        {facts.length > 0 && <Facts of={facts.map(([name, value]) => [name, value ?? "unknown"] as const)} />}
        {tables.map((table, index) => (
          <div key={index} className="stack">
            {table.title !== "" && <h3>{table.title}</h3>}
            <TextTable of={table} label={table.title || title} />
          </div>
        ))}
      </div>
    </Card>
  );
}

/** Longer texts get room of their own, where a narrow screen would squeeze them to a word a line. */
const LONG_CELL = 80;

function TextTable({ of: table, label }: { of: SectionTable; label: string }) {
  const sideOf = (place: number): string | undefined => (table.numeric.includes(place) ? "end" : undefined);
  return (
    <div className="scroll text-table" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {table.headings.map((heading, place) => (
              <th key={place} scope="col" className={sideOf(place)}>
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, place) => (
                <td key={place} className={sideOf(place) ?? (cell.length > LONG_CELL ? "long" : undefined)}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
