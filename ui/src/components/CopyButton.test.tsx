import { fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";

import { CopyButton } from "./CopyButton";

afterEach(() => vi.unstubAllGlobals());

/** A browser with this clipboard, which copies what is selected or does not. */
function stubBrowser(clipboard: Pick<Clipboard, "writeText"> | undefined, isSelectionCopied: boolean) {
  const selected: string[] = [];
  vi.stubGlobal("navigator", { clipboard });
  const execCommand = (): boolean => {
    selected.push((document.activeElement as HTMLTextAreaElement).value);
    return isSelectionCopied;
  };
  Object.assign(document, { execCommand });
  return selected;
}

async function clickCopy(): Promise<string> {
  render(<CopyButton text="prony_secret" />);
  fireEvent.click(screen.getByRole("button", { name: "Copy" }));
  await vi.waitFor(() => expect(screen.getByRole("status").textContent).not.toBe(""));
  return screen.getByRole("status").textContent;
}

it("copies by the browser's clipboard", async () => {
  const writeText = vi.fn<(text: string) => Promise<void>>().mockResolvedValue();
  const selected = stubBrowser({ writeText }, false);
  expect(await clickCopy()).toBe("Copied");
  expect(screen.getByRole("button", { name: "Copied" })).toBeDefined();
  expect(writeText).toHaveBeenCalledExactlyOnceWith("prony_secret");
  expect(selected).toEqual([]);
});

it("copies what it selects where there is no clipboard, and leaves nothing behind", async () => {
  const selected = stubBrowser(undefined, true);
  expect(await clickCopy()).toBe("Copied");
  expect(selected).toEqual(["prony_secret"]);
  expect(document.querySelector("textarea")).toBeNull();
  expect(document.activeElement).toBe(screen.getByRole("button"));
});

it("says what to do where nothing can copy", async () => {
  stubBrowser({ writeText: () => Promise.reject(new Error("not allowed")) }, false);
  expect(await clickCopy()).toBe("The browser did not copy it. Select the text and press Ctrl-C.");
  expect(screen.getByRole("button", { name: "Copy" })).toBeDefined();
});
