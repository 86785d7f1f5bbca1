import { fireEvent, render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";

import { ConfirmButton, FormDialog } from "./Dialog";

/** A request that is answered when the test says so. */
function holdRequest() {
  let [answer, fail]: [() => void, (error: Error) => void] = [() => undefined, () => undefined];
  const answered = new Promise<void>((resolve, reject) => ([answer, fail] = [resolve, reject]));
  return { act: vi.fn(() => answered), answer, fail };
}

function button(name: string): HTMLButtonElement {
  return screen.getByRole<HTMLButtonElement>("button", { name });
}

/** Press Escape, as the browser tells a dialog of it. */
function escapeCloses(): boolean {
  return fireEvent(screen.getByRole("dialog"), new Event("cancel", { cancelable: true }));
}

describe("a dialog whose request runs", () => {
  it("cannot be closed or sent again until the answer is there", async () => {
    const { act, answer } = holdRequest();
    const onClose = vi.fn();
    render(
      <FormDialog title="Make a token" yes="Make it" onClose={onClose} act={act}>
        <input aria-label="Name" />
      </FormDialog>,
    );
    const dialog = screen.getByRole("dialog");
    expect(escapeCloses()).toBe(true);
    await userEvent.dblClick(button("Make it"));
    fireEvent.submit(screen.getByRole("textbox").closest("form") ?? dialog);
    expect(act).toHaveBeenCalledOnce();
    expect(dialog.getAttribute("aria-busy")).toBe("true");
    expect(screen.getByRole("status").textContent).toBe("Sending …");
    expect([button("Make it").disabled, button("Close").disabled]).toEqual([true, true]);
    expect(escapeCloses()).toBe(false);
    expect(dialog.getAttribute("closedby")).toBe("none");
    answer();
    await vi.waitFor(() => expect(dialog.getAttribute("aria-busy")).toBe("false"));
    expect([button("Make it").disabled, button("Close").disabled]).toEqual([false, false]);
    expect([escapeCloses(), dialog.getAttribute("closedby")]).toEqual([true, "closerequest"]);
    expect(onClose).not.toHaveBeenCalled();
  });

  it("can be closed and sent again when it was refused", async () => {
    const { act, fail } = holdRequest();
    render(
      <FormDialog title="Make a token" yes="Make it" onClose={vi.fn()} act={act}>
        {null}
      </FormDialog>,
    );
    await userEvent.click(button("Make it"));
    fail(new Error("the name is taken"));
    expect((await screen.findByRole("alert")).textContent).toBe("the name is taken");
    expect([button("Make it").disabled, button("Close").disabled]).toEqual([false, false]);
    await userEvent.click(button("Make it"));
    expect(act).toHaveBeenCalledTimes(2);
  });

  it("that only asks holds its answer back too", async () => {
    const { act, answer } = holdRequest();
    render(<ConfirmButton label="Revoke" title="Revoke it?" question="It stops." yes="Revoke it" act={act} />);
    await userEvent.click(button("Revoke"));
    await userEvent.dblClick(button("Revoke it"));
    expect(act).toHaveBeenCalledOnce();
    expect(["Revoke it", "Keep as it is", "Close"].map((name) => button(name).disabled)).toEqual([true, true, true]);
    expect(escapeCloses()).toBe(false);
    answer();
    await vi.waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  });
});
