// Where one can go from anywhere: a page has a line here when it has a route, and not before.
import { linkOptions } from "@tanstack/react-router";

export const NAVIGATION = [
  {
    group: "Measure",
    links: linkOptions([{ to: "/", label: "Overview" }]),
  },
];
