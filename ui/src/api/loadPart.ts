// Loads parts of the application that are fetched when they are first shown, and waits while the server is away.
import { pauseAfter, wait } from "./backOff";

const RELOADED_KEY = "prony.reloaded";

/**
 * Import a part, again and again while nobody answers.
 *
 * Where the server answers and the part still cannot be had, it belongs to another version of these pages, or the
 * browser remembers the failure: then the page is loaded anew, once.
 */
export async function loadPart<T>(load: () => Promise<T>): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await load();
    } catch (error) {
      if (failures > 0 && (await isServerUp())) return reloadOnce(error);
      await wait(pauseAfter(failures));
    }
  }
}

async function isServerUp(): Promise<boolean> {
  try {
    await fetch(new URL("/api/v1/health", location.origin), { cache: "no-store" });
    return true;
  } catch {
    return false;
  }
}

/** Load the page anew, and never return; throw what went wrong where that did not help. */
async function reloadOnce(error: unknown): Promise<never> {
  const what = error instanceof Error ? error.message : String(error);
  if (sessionStorage.getItem(RELOADED_KEY) === what) throw error;
  sessionStorage.setItem(RELOADED_KEY, what);
  location.reload();
  return new Promise<never>(() => undefined);
}
