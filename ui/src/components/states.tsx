// What a page shows instead of its content: empty, loading or failed.
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { ApiError } from "@/api/client";

import { Page } from "./layout";

export function EmptyState(props: { title: string; children?: ReactNode; actions?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{props.title}</h2>
      {props.children}
      {props.actions && <div className="row">{props.actions}</div>}
    </div>
  );
}

export function Loading({ what = "Loading" }: { what?: string }) {
  return (
    <p className="loading" role="status">
      {what} …
    </p>
  );
}

export function Failure({ error, onRetry }: { error: unknown; onRetry?: (() => void) | undefined }) {
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof ApiError ? error.hint : "";
  return (
    <div className="failure" role="alert">
      <strong>{message}</strong>
      {hint && <p>{hint}</p>}
      {onRetry && (
        <button type="button" className="button slim" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** A page for what is not there, or not any more: a title, and a way back. */
export function Missing({ title, back, children }: { title: string; back: ReactNode; children?: ReactNode }) {
  return (
    <Page title={title}>
      <EmptyState title="It may have been deleted, or the link is not whole." actions={back}>
        {children}
      </EmptyState>
    </Page>
  );
}

/** Show a query's data, or that it is coming, or why it is not. */
export function QueryContent<T>(props: {
  query: UseQueryResult<T>;
  what?: string;
  /** What stands there when the server says that there is no such thing. */
  missing?: ReactNode;
  children: (data: T) => ReactNode;
}) {
  const { query, what, missing, children } = props;
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (missing !== undefined && query.error instanceof ApiError && query.error.status === 404) return missing;
  if (query.error) return <Failure error={query.error} onRetry={() => void query.refetch()} />;
  return <Loading {...(what ? { what } : {})} />;
}
