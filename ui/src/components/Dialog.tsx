// Modal dialogs, built on the browser's own element, which keeps the focus and closes on Escape.
import { type ReactNode, type SyntheticEvent, useEffect, useId, useRef, useState } from "react";

import { Failure } from "./states";

export function Dialog(props: { title: string; onClose: () => void; footer?: ReactNode; children: ReactNode }) {
  const { title, onClose, footer, children } = props;
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    <dialog ref={element} aria-labelledby={id} onClose={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" className="button quiet slim" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </header>
      <div className="body">{children}</div>
      {footer && <footer>{footer}</footer>}
    </dialog>
  );
}

/** A dialog with fields: `act` sends them, and what it throws is shown below them until one is changed. */
export function FormDialog(props: {
  title: string;
  yes: string;
  onClose: () => void;
  act: () => Promise<unknown>;
  children: ReactNode;
}) {
  const { title, yes, onClose, act, children } = props;
  const [error, setError] = useState<unknown>(null);
  const form = useId();
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    try {
      await act();
    } catch (caught) {
      setError(caught);
    }
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      footer={
        <button type="submit" form={form} className="button primary">
          {yes}
        </button>
      }
    >
      <form id={form} className="stack" onChange={() => setError(null)} onSubmit={(event) => void submit(event)}>
        {children}
        {error !== null && <Failure error={error} />}
      </form>
    </Dialog>
  );
}

/** A button that asks before it does what cannot be undone. */
export function ConfirmButton(props: {
  label: ReactNode;
  title: string;
  question: ReactNode;
  yes: string;
  act: () => Promise<unknown>;
  className?: string;
  disabled?: boolean;
}) {
  const { label, title, question, yes, act, className = "button", disabled = false } = props;
  const [open, setOpen] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const close = (): void => {
    setOpen(false);
    setError(null);
  };
  const run = async (): Promise<void> => {
    setBusy(true);
    try {
      await act();
      close();
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <button type="button" className={className} disabled={disabled} onClick={() => setOpen(true)}>
        {label}
      </button>
      {open && (
        <Dialog
          title={title}
          onClose={close}
          footer={
            <>
              <button type="button" className="button" onClick={close}>
                Keep as it is
              </button>
              <button type="button" className="button danger" disabled={busy} onClick={() => void run()}>
                {yes}
              </button>
            </>
          }
        >
          <div className="stack">
            <div>{question}</div>
            {error !== null && <Failure error={error} />}
          </div>
        </Dialog>
      )}
    </>
  );
}
