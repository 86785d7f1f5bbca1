// Short messages in the corner about the outcome of an action, which may be taken back there; `useAction` runs an action
// and shows one.
import { useCallback, useSyncExternalStore } from "react";

interface Toast {
  id: number;
  text: string;
  bad: boolean;
  undo: (() => void) | null;
}

const SHOWN_MS = 6000;
// Who wants to take something back has to read, decide and get there.
const SHOWN_WITH_UNDO_MS = 20_000;
let toasts: readonly Toast[] = [];
let count = 0;
const listeners = new Set<() => void>();

export function showToast(text: string, bad = false): void {
  addToast({ text, bad, undo: null });
}

/** Say what was done, beside a button that takes it back. */
export function showToastWithUndo(text: string, undo: () => void): void {
  addToast({ text, bad: false, undo });
}

function addToast(toast: Omit<Toast, "id">): void {
  const id = ++count;
  setToasts([...toasts, { ...toast, id }]);
  setTimeout(() => removeToast(id), toast.undo ? SHOWN_WITH_UNDO_MS : SHOWN_MS);
}

function removeToast(id: number): void {
  setToasts(toasts.filter((toast) => toast.id !== id));
}

function setToasts(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map((toast) => (
        <div key={toast.id} className={toast.bad ? "toast bad" : "toast"}>
          {toast.text}
          {toast.undo && (
            <button
              type="button"
              className="button slim"
              onClick={() => {
                toast.undo?.();
                removeToast(toast.id);
              }}
            >
              Undo
            </button>
          )}
        </div>
      ))}
    </div>
  );
}

/** Return a function that does something, tells what came of it, and never throws. */
export function useAction(): (work: () => Promise<unknown>, done?: string) => Promise<void> {
  return useCallback(async (work, done) => {
    try {
      await work();
      if (done) showToast(done);
    } catch (error) {
      showToast(error instanceof Error ? error.message : String(error), true);
    }
  }, []);
}
