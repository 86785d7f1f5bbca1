import { describe, expect, it } from "vitest";

import { formatLog } from "./logText";

const local = (instant: string): string => {
  const at = new Date(instant);
  const pad = (value: number): string => String(value).padStart(2, "0");
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}.123`;
};

describe("a log as it is read", () => {
  it("has its times in the reader's zone and its sources in a column", () => {
    const { text, sources, day, zone } = formatLog(
      "2026-11-18T12:00:01.123Z prony begun\n2026-11-18T12:00:02.123Z run-0000.out loss 0.5\n",
    );
    expect(text).toBe(
      `${local("2026-11-18T12:00:01.123Z")} prony        begun\n${local("2026-11-18T12:00:02.123Z")} run-0000.out loss 0.5\n`,
    );
    expect(sources).toEqual(["prony", "run-0000.out"]);
    expect(day).toBe("18 Nov 2026");
    expect(zone).toContain(Intl.DateTimeFormat().resolvedOptions().timeZone);
  });

  it("names the day of lines that are of another one", () => {
    const { text } = formatLog("2026-11-18T12:00:01.123Z a one\n2026-11-20T12:00:01.123Z a two\n");
    expect(text.split("\n")[1]).toContain("20 Nov 2026 ");
  });

  it("leaves lines of another form as they are", () => {
    expect(formatLog("first words\nlast words")).toMatchObject({
      text: "first words\nlast words",
      sources: [],
      day: null,
    });
  });
});
