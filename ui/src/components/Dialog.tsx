// Modal dialogs, built on the browser's own element, which keeps the focus and closes on Escape.
import { type ComponentProps, type ReactNode, type SyntheticEvent, useEffect, useId, useRef, useState } from "react";

import { Failure } from "./states";

interface DialogProps {
  title: string;
  onClose: () => void;
  /** A request runs whose answer must be seen: nothing closes the dialog until it is there. */
  busy?: boolean;
  footer?: ReactNode;
  children: ReactNode;
}

export function Dialog({ title, onClose, busy = false, footer, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    element.current?.showModal();
  }, []);
  useEffect(() => {
    // React knows no such property. Without it a second Escape closes a dialog whatever is said about the first.
    element.current?.setAttribute("closedby", busy ? "none" : "closerequest");
  }, [busy]);
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      aria-busy={busy}
      onCancel={(event) => {
        if (busy) event.preventDefault();
      }}
      onClose={onClose}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" className="button quiet slim" aria-label="Close" disabled={busy} onClick={onClose}>
          ✕
        </button>
      </header>
      <div className="body">{children}</div>
      {footer && <footer>{footer}</footer>}
    </dialog>
  );
}

/** Runs what a dialog asks for, once at a time; what it throws is kept until it runs again or is forgotten. */
function useRequest(act: () => Promise<unknown>) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const isRunning = useRef(false);
  const run = async (): Promise<void> => {
    if (isRunning.current) return;
    isRunning.current = true;
    setBusy(true);
    try {
      await act();
      setError(null);
    } catch (caught) {
      setError(caught);
    } finally {
      isRunning.current = false;
      setBusy(false);
    }
  };
  return { busy, error, run, forget: () => setError(null) };
}

/** The button that sends what a dialog asks for, and turns while it is sent. */
function SendButton({ busy, className, ...props }: { busy: boolean; className: string } & ComponentProps<"button">) {
  return (
    <>
      <span className="unseen" role="status">
        {busy && "Sending …"}
      </span>
      <button {...props} className={busy ? `button busy ${className}` : `button ${className}`} disabled={busy} />
    </>
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
  const { busy, error, run, forget } = useRequest(act);
  const form = useId();
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    void run();
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      busy={busy}
      footer={
        <SendButton type="submit" form={form} className="primary" busy={busy}>
          {yes}
        </SendButton>
      }
    >
      <form id={form} className="stack" onChange={forget} onSubmit={submit}>
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
  const { busy, error, run, forget } = useRequest(async () => {
    await act();
    setOpen(false);
  });
  const close = (): void => {
    setOpen(false);
    forget();
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
          busy={busy}
          footer={
            <>
              <button type="button" className="button" disabled={busy} onClick={close}>
                Keep as it is
              </button>
              <SendButton type="button" className="danger" busy={busy} onClick={() => void run()}>
                {yes}
              </SendButton>
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
