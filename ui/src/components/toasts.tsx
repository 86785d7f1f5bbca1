// Short messages in the corner about the outcome of an action; `useAction` runs an action and shows one.
import { useCallback, useSyncExternalStore } from "react";

interface Toast {
  id: number;
  text: string;
  bad: boolean;
}

const SHOWN_MS = 6000;
let toasts: readonly Toast[] = [];
let count = 0;
const listeners = new Set<() => void>();

export function showToast(text: string, bad = false): void {
  const id = ++count;
  setToasts([...toasts, { id, text, bad }]);
  setTimeout(() => setToasts(toasts.filter((toast) => toast.id !== id)), SHOWN_MS);
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
