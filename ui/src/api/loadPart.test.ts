import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { fakeServer } from "../../tests/server";

import { loadPart } from "./loadPart";

const server = fakeServer();
const reload = vi.fn();

beforeEach(() => {
  vi.useFakeTimers();
  reload.mockReset();
  vi.spyOn(location, "reload").mockImplementation(reload);
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** An import that fails so often, and then succeeds. */
function failing(times: number): () => Promise<string> {
  let count = 0;
  return () => {
    count += 1;
    return count > times ? Promise.resolve("the part") : Promise.reject(new Error("Failed to fetch it"));
  };
}

describe("a part of the pages that is loaded late", () => {
  it("is tried again until the server is back, without loading the page anew", async () => {
    server.current.isDown = true;
    const loaded = loadPart(failing(4));
    await vi.advanceTimersByTimeAsync(500 + 1000 + 2000 + 4000);
    await expect(loaded).resolves.toBe("the part");
    expect(reload).not.toHaveBeenCalled();
  });

  it("loads the page anew once where the server answers and does not have it", async () => {
    void loadPart(failing(Infinity));
    await vi.advanceTimersByTimeAsync(500);
    expect(reload).toHaveBeenCalledTimes(1);
    const again = loadPart(failing(Infinity));
    const refused = expect(again).rejects.toThrow("Failed to fetch it");
    await vi.advanceTimersByTimeAsync(500);
    await refused;
    expect(reload).toHaveBeenCalledTimes(1);
  });
});
