import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { fakeCurve } from "../../../tests/fakes/analysis";
import { fakeCatalogue } from "../../../tests/fakes/resources";
import { fakeServer } from "../../../tests/server";
import { showPart } from "../../../tests/visit";

import { CurveCard } from "./CurveCard";

const server = fakeServer();

it("greys the numbers of a void level, and says of each limit by its title whether it held", async () => {
  server.current.answer("GET", "/api/v1/recipes/names", fakeCatalogue());
  const [level] = fakeCurve().levels;
  if (!level) throw new Error("the fake has no level");
  const checks = [{ key: "inference_ms.p50", limit: 5, state: "violated" as const, text: "too slow", estimate: null }];
  const curve = fakeCurve({ levels: [{ ...level, grade: "void", checks }] });
  await showPart(<CurveCard curve={curve} />);
  const table = within(screen.getByRole("table"));
  expect(await table.findByText("Inference p50 violated")).toBeDefined();
  expect(table.getAllByTitle(/./).some((one) => one.className === "quantity void")).toBe(true);
});

it("names a single request a second in the singular", async () => {
  server.current.answer("GET", "/api/v1/recipes/names", fakeCatalogue());
  const [level] = fakeCurve().levels;
  if (!level) throw new Error("the fake has no level");
  const bottleneck = { where: "none" as const, what: "" as const, text: "Nothing was busy.", clues: [] };
  const levels = [1, 2].map((load) => ({ ...level, load, bottleneck }));
  await showPart(<CurveCard curve={fakeCurve({ noun: "requests a second", levels })} />);
  const evidence = within(screen.getByRole("region", { name: "What was the bottleneck" }));
  expect(evidence.getByText(/^at 1 request a second/)).toBeDefined();
  expect(evidence.getByText(/^at 2 requests a second/)).toBeDefined();
});
