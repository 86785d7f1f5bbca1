// The links of the navigation; each page with a route has one.
import { linkOptions } from "@tanstack/react-router";

export const NAVIGATION = [
  {
    group: "Measure",
    links: linkOptions([
      { to: "/", label: "Overview" },
      { to: "/run", label: "Run" },
      { to: "/experiments", label: "Experiments" },
      { to: "/fleet", label: "Fleet" },
    ]),
  },
  {
    group: "Understand",
    links: linkOptions([
      { to: "/compare", label: "Compare" },
      { to: "/load", label: "Load" },
      { to: "/matrix", label: "Matrix" },
      { to: "/history", label: "History" },
      { to: "/reports", label: "Reports" },
    ]),
  },
  {
    group: "Operate",
    links: linkOptions([
      { to: "/schedules", label: "Schedules" },
      { to: "/alarms", label: "Alarms" },
      { to: "/monitoring", label: "Monitoring" },
      { to: "/settings", label: "Settings" },
    ]),
  },
];
