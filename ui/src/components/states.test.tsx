import { QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";

import { ApiError } from "@/api/client";

import { StateBadge, VerdictBadge } from "./Badge";
import { ConfirmButton } from "./Dialog";
import { Progress } from "./Progress";
import { Failure, QueryContent } from "./states";
import { Tabs } from "./Tabs";
import { Toasts, useAction } from "./toasts";

function buildError(): ApiError {
  return new ApiError(409, {
    code: "busy",
    detail: "it runs",
    hint: "cancel it first",
    status: 409,
    title: "",
    type: "",
    field: "",
    problems: [],
  });
}

describe("what is not there", () => {
  it("is said with what to do, and can be tried again", async () => {
    const onRetry = vi.fn();
    render(<Failure error={buildError()} onRetry={onRetry} />);
    expect(screen.getByRole("alert").textContent).toContain("it runs");
    expect(screen.getByRole("alert").textContent).toContain("cancel it first");
    await userEvent.click(screen.getByRole("button", { name: "Try again" }));
    expect(onRetry).toHaveBeenCalledOnce();
  });

  it("is waited for, then refused, then shown when it comes after all", async () => {
    const answers: (() => Promise<string>)[] = [() => Promise.reject(buildError()), () => Promise.resolve("twelve")];
    const Asking = () => {
      const query = useQuery({ queryKey: ["x"], queryFn: () => answers.shift()?.() ?? "thirteen", retry: false });
      return (
        <QueryContent query={query} what="Counting">
          {(found) => <p>{found}</p>}
        </QueryContent>
      );
    };
    render(
      <QueryClientProvider client={new QueryClient()}>
        <Asking />
      </QueryClientProvider>,
    );
    expect(screen.getByRole("status").textContent).toBe("Counting …");
    await userEvent.click(await screen.findByRole("button", { name: "Try again" }));
    expect(await screen.findByText("twelve")).toBeDefined();
    expect(screen.queryByRole("alert")).toBeNull();
  });
});

describe("a mark", () => {
  it.each(["valid", "suspect", "void"] as const)("tells the verdict %s by its word and its shape", (grade) => {
    render(<VerdictBadge grade={grade} title="because" />);
    const mark = screen.getByText(grade);
    expect(mark.title).toBe("because");
    expect(mark.querySelector("svg")?.getAttribute("aria-hidden")).toBe("true");
  });

  it("has shapes of its own for good, bad and doubtful", () => {
    const shapes = (["valid", "suspect", "void"] as const).map(
      (grade) => render(<VerdictBadge grade={grade} />).container.querySelector("svg")?.innerHTML,
    );
    expect(new Set(shapes).size).toBe(3);
  });

  it("says a state as people do, and one that only a newer server knows as it is", () => {
    render(
      <>
        <StateBadge of="slower_than_expected" />
        <StateBadge of="hibernating" />
      </>,
    );
    expect(screen.getByText("slower than expected")).toBeDefined();
    expect(screen.getByText("hibernating").className).toContain("tone-quiet");
  });

  it("tells progress in words too", () => {
    render(<Progress counts={{ complete: 2, failed: 1, leased: 1, waiting: 6 }} total={10} />);
    expect(screen.getByRole("img", { name: "of 10 jobs: 2 complete, 1 failed, 1 running, 6 waiting" })).toBeDefined();
  });
});

describe("tabs", () => {
  it("are walked by the arrows, round and round", async () => {
    const onChoose = vi.fn<(key: "a" | "b") => void>();
    render(
      <Tabs
        tabs={[
          { key: "a", label: "A" },
          { key: "b", label: "B" },
        ]}
        chosen="a"
        label="Parts"
        onChoose={onChoose}
      >
        inside
      </Tabs>,
    );
    expect(screen.getByRole("tab", { selected: true }).textContent).toBe("A");
    expect(screen.getByRole("tabpanel", { name: "A" }).textContent).toBe("inside");
    screen.getByRole("tab", { name: "A" }).focus();
    await userEvent.keyboard("{ArrowLeft}");
    expect(onChoose).toHaveBeenLastCalledWith("b");
    expect(document.activeElement).toBe(screen.getByRole("tab", { name: "B" }));
  });
});

describe("an action", () => {
  it("that cannot be undone is asked about first, and says why it could not be done", async () => {
    const act = vi.fn<() => Promise<void>>().mockRejectedValueOnce(buildError()).mockResolvedValueOnce();
    render(<ConfirmButton label="Delete" title="Delete it?" question="It goes." yes="Delete it" act={act} />);
    await userEvent.click(screen.getByRole("button", { name: "Delete" }));
    expect(act).not.toHaveBeenCalled();
    await userEvent.click(screen.getByRole("button", { name: "Delete it" }));
    expect((await screen.findByRole("alert")).textContent).toContain("it runs");
    await userEvent.click(screen.getByRole("button", { name: "Delete it" }));
    await vi.waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    expect(act).toHaveBeenCalledTimes(2);
  });

  it("tells for a moment what came of it, good or bad", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const Acting = ({ work }: { work: () => Promise<unknown> }) => {
      const act = useAction();
      return (
        <button type="button" onClick={() => void act(work, "done")}>
          go
        </button>
      );
    };
    const { rerender } = render(
      <>
        <Acting work={() => Promise.resolve()} />
        <Toasts />
      </>,
    );
    const told = screen.getByRole("status");
    const runAction = async (): Promise<void> => {
      screen.getByRole("button", { name: "go" }).click();
      await vi.advanceTimersByTimeAsync(1);
    };
    await runAction();
    expect(told.textContent).toContain("done");
    rerender(
      <>
        <Acting work={() => Promise.reject(buildError())} />
        <Toasts />
      </>,
    );
    await runAction();
    expect(told.textContent).toContain("it runs");
    await vi.advanceTimersByTimeAsync(6000);
    expect(told.textContent).not.toMatch(/done|it runs/);
  });
});
