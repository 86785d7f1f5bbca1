// Pauses between tries that fail: each twice as long as the one before, up to a bound.
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

/** Return how long to wait after so many failures that came before. */
export function pauseAfter(failures: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS);
}

/** Wait so long, or until the signal aborts, or until what `onBegin` was given is called. */
export async function wait(ms: number, signal?: AbortSignal, onBegin?: (skip: () => void) => void): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
    onBegin?.(end);
  });
}
