// The formats in which a report can be downloaded.
import type { operations } from "@/api/schema";

type Name = NonNullable<NonNullable<operations["report"]["parameters"]["query"]>["format"]>;

export interface Format {
  format: Name;
  label: string;
  suffix: string;
  about: string;
}

const KNOWN: Record<Name, Omit<Format, "format">> = {
  html: { label: "HTML", suffix: ".html", about: "one page that needs no other files" },
  pdf: { label: "PDF", suffix: ".pdf", about: "the same page, printed by a browser on the server" },
  md: { label: "Markdown", suffix: ".md", about: "for a wiki or an issue" },
  json: { label: "JSON", suffix: ".json", about: "every number, for programs" },
  csv: { label: "CSV", suffix: ".csv", about: "a row for each number, for spreadsheets" },
  junit: { label: "JUnit", suffix: ".xml", about: "gates as tests, for a build server" },
  github: { label: "GitHub", suffix: ".github.md", about: "a summary for a workflow" },
};

export const FORMATS: readonly Format[] = (Object.keys(KNOWN) as Name[]).map((format) => ({
  format,
  ...KNOWN[format],
}));
