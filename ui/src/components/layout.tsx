// The layout of a page and its parts: title, cards, lists of facts, labels.
import { type ReactNode, useEffect } from "react";

export function Page(props: {
  title: string;
  heading?: ReactNode;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  const { title, heading = title, about, actions, children } = props;
  useEffect(() => {
    document.title = `${title} · Prony`;
  }, [title]);
  return (
    <>
      <div className="page-head">
        <div>
          <h1>{heading}</h1>
          {about && <div className="muted">{about}</div>}
        </div>
        {actions && <div className="row">{actions}</div>}
      </div>
      <div className="stack wide">{children}</div>
    </>
  );
}

export function Card(props: {
  title?: ReactNode;
  actions?: ReactNode;
  flush?: boolean;
  children: ReactNode;
  label?: string;
}) {
  const { title, actions, flush = false, children, label } = props;
  return (
    <section className="card" aria-label={label}>
      {(title !== undefined || actions !== undefined) && (
        <header>
          <h2>{title}</h2>
          {actions !== undefined && <div className="row">{actions}</div>}
        </header>
      )}
      {flush ? children : <div className="body">{children}</div>}
    </section>
  );
}

export function Facts({ of: facts }: { of: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="facts">
      {facts.map(([name, value], index) => (
        // A name may come twice, with another value.
        <div key={`${index} ${name}`} style={{ display: "contents" }}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Labels({ of: labels }: { of: Record<string, string> }) {
  return (
    <span className="row" style={{ gap: 4 }}>
      {Object.entries(labels).map(([name, value]) => (
        <span key={name} className="label">
          {name}={value}
        </span>
      ))}
    </span>
  );
}
