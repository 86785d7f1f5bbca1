import { describe, expect, it } from "vitest";

import { staleKeys } from "./live";
import { parseEvent } from "./sse";

describe("a block of a stream", () => {
  it("is an event with its id", () => {
    expect(parseEvent('id: a-3\nevent: changed\ndata: {"a":\ndata: 1}')).toEqual({
      id: "a-3",
      event: "changed",
      data: '{"a":\n1}',
    });
  });

  it("is nothing where it is a comment", () => {
    expect(parseEvent(": beat")).toBeNull();
  });
});

describe("what changed", () => {
  it("makes stale what speaks of it, and of one experiment only its own", () => {
    const keys = staleKeys({ experiments: ["x1"] });
    expect(keys).toContain("listing");
    expect(keys).toContain("experiment:x1");
    expect(keys).not.toContain("alarms");
  });
});
