import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import type { GateOutcome } from "@/api/schema";

import { fakeServer } from "../../../tests/server";
import { showPart } from "../../../tests/visit";

import { Gates } from "./Gates";

const server = fakeServer();

function buildOutcome(gate: string, state: GateOutcome["state"], text: string): GateOutcome {
  return { gate, job_id: "x1-001", state, text, title: "tiny" };
}

describe("gates", () => {
  it("say whether they hold and why, and more of them can be tried on the same numbers", async () => {
    const own = buildOutcome("inference_ms.p50 <= 20", "passed", "12.3 ms is below 20 ms");
    server.current.answer("GET", "/api/v1/experiments/{experiment_id}/gates", {
      experiment_id: "x1",
      name: "nightly",
      strict: false,
      outcomes: [own, buildOutcome("inference_ms.p99 <= 10", "failed", "31 ms is above 10 ms")],
    });
    const { user } = await showPart(<Gates experimentId="x1" outcomes={[own]} />);
    expect(screen.getByText("12.3 ms is below 20 ms")).toBeDefined();
    expect(server.current.requests).toHaveLength(0);
    await user.type(screen.getByLabelText("Try more gates on these results"), "inference_ms.p99 <= 10{Enter}");
    expect(await screen.findByText("31 ms is above 10 ms")).toBeDefined();
    expect(screen.getByText("failed")).toBeDefined();
    expect(server.current.requests[0]?.query).toEqual({ gate: "inference_ms.p99 <= 10", strict: "false" });
  });

  it("that are not well written are refused where they were typed", async () => {
    server.current.refuse("GET", "/api/v1/experiments/{experiment_id}/gates", {
      status: 422,
      detail: "‘faster’ is no gate",
      hint: "write METRIC <= LIMIT",
    });
    const { user } = await showPart(<Gates experimentId="x1" outcomes={[]} />);
    expect(screen.getByText("This recipe has no gates.")).toBeDefined();
    await user.type(screen.getByLabelText("Try more gates on these results"), "faster{Enter}");
    expect((await screen.findByRole("alert")).textContent).toContain("write METRIC <= LIMIT");
  });
});
