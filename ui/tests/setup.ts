// Set-up for all tests: fake charts, longer timeouts and clean-up after each test.
import { cleanup, configure } from "@testing-library/react";
import { afterEach, vi } from "vitest";

import { setToken } from "../src/api/token";

vi.mock("../src/charts/echarts", async () => import("./fakeCharts"));

configure({
  // A busy machine is slow and not wrong.
  asyncUtilTimeout: 10_000,
  // Whether each element can be seen is asked of styles that nobody loads here: slow, and always yes.
  defaultHidden: true,
  // What was asked for is told; the whole page is not.
  getElementError: (message) => new Error(message?.split("\n\n")[0] ?? "not found"),
});

afterEach(() => {
  vi.useRealTimers();
  cleanup();
  // What modules know outlives a file of tests: they are loaded once for all.
  setToken("");
  sessionStorage.clear();
  localStorage.clear();
});
