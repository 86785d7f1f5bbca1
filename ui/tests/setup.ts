import { cleanup } from "@testing-library/react";
import { afterEach, vi } from "vitest";

vi.mock("../src/charts/echarts", async () => import("./drawn"));

afterEach(() => {
  cleanup();
  sessionStorage.clear();
  localStorage.clear();
});
