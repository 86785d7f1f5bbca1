// The files of a job's result: list, look into a text, save.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";

import { downloadFile } from "@/api/client";
import type { ResultFiles } from "@/api/schema";
import { Card } from "@/components/layout";
import { formatCount } from "@/components/number";
import { Failure, Loading, QueryContent } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { RelativeTime } from "@/components/time";
import { useAction } from "@/components/toasts";

import { JobChooser } from "./JobChooser";
import { filesQuery, fileTextQuery } from "./queries";

type File = ResultFiles["files"][number];

const route = getRouteApi("/experiments/$experimentId");

export function Files({ experimentId }: { experimentId: string }) {
  return (
    <JobChooser experimentId={experimentId}>
      {(jobId) => <FilesOfJob key={jobId} experimentId={experimentId} jobId={jobId} />}
    </JobChooser>
  );
}

function FilesOfJob({ experimentId, jobId }: { experimentId: string; jobId: string }) {
  const { file: shown } = route.useSearch();
  const query = useQuery(filesQuery(experimentId, jobId));
  return (
    <QueryContent query={query} what="Asking for the files">
      {({ files, left_out: leftOut }) => {
        const chosen = files.find((one) => one.name === shown && one.is_text);
        return (
          <div className="stack wide">
            <Card title={`${formatCount(files.length + leftOut)} files`} flush>
              <FileTable jobId={jobId} files={files} />
              {leftOut > 0 && (
                <p className="muted small body">
                  {formatCount(leftOut)} more are not listed; Export brings every file.
                </p>
              )}
            </Card>
            {chosen && <FileText key={chosen.name} experimentId={experimentId} jobId={jobId} file={chosen} />}
          </div>
        );
      }}
    </QueryContent>
  );
}

function FileTable({ jobId, files }: { jobId: string; files: readonly File[] }) {
  const act = useAction();
  const columns: readonly Column<File>[] = [
    {
      key: "name",
      heading: "File",
      cell: (one) =>
        one.is_text ? (
          <Link
            className="mono"
            from="/experiments/$experimentId"
            search={(before) => ({ ...before, file: one.name })}
            replace
            resetScroll={false}
          >
            {one.name}
          </Link>
        ) : (
          <span className="mono">{one.name}</span>
        ),
    },
    { key: "size", heading: "Size", cell: (one) => formatSize(one.size_bytes), end: true },
    { key: "modified", heading: "Changed", cell: (one) => <RelativeTime at={one.modified_at} /> },
    {
      key: "save",
      heading: "",
      cell: (one) => (
        <button
          type="button"
          className="button slim"
          aria-label={`Download ${one.name}`}
          onClick={() => void act(() => downloadFile(filePath(jobId, one.name), saveName(jobId, one.name)))}
        >
          Download
        </button>
      ),
    },
  ];
  return <Table rows={files} columns={columns} keyOf={(one) => one.name} label="Files of the result" />;
}

function filePath(jobId: string, name: string): string {
  return `/api/v1/jobs/${encodeURIComponent(jobId)}/file?${new URLSearchParams({ name }).toString()}`;
}

function saveName(jobId: string, name: string): string {
  return `${jobId}-${name.replaceAll("/", "-")}`;
}

const KIB = 1024;

function formatSize(bytes: number): string {
  if (bytes < KIB) return `${bytes} B`;
  if (bytes < KIB * KIB) return `${(bytes / KIB).toFixed(1)} KiB`;
  return `${(bytes / KIB / KIB).toFixed(1)} MiB`;
}

function FileText({ experimentId, jobId, file }: { experimentId: string; jobId: string; file: File }) {
  const query = useInfiniteQuery(fileTextQuery(experimentId, jobId, file.name));
  return (
    <Card title={<span className="mono">{file.name}</span>}>
      {query.error ? (
        <Failure error={query.error} />
      ) : query.data === undefined ? (
        <Loading what="Reading the file" />
      ) : (
        <div className="stack">
          <pre className="code log" tabIndex={0} aria-label={`Text of ${file.name}`}>
            {query.data.pages.map((one) => one.text).join("") || "It is empty."}
          </pre>
          {query.hasNextPage && (
            <button
              type="button"
              className="button slim"
              disabled={query.isFetchingNextPage}
              onClick={() => void query.fetchNextPage()}
            >
              Show more
            </button>
          )}
        </div>
      )}
    </Card>
  );
}
