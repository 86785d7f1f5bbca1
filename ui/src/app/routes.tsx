// The routes of all pages and what their URLs may hold; pages are loaded when they are opened. Add new pages here.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";

import { loadPart } from "@/api/loadPart";
import { Failure, Loading } from "@/components/states";
import { parseCompareSearch } from "@/features/compare/search";
import { parseDeviceSearch } from "@/features/device/search";
import { parseExperimentSearch } from "@/features/experiment/search";
import { parseListSearch } from "@/features/experiments/search";
import { parseFleetSearch } from "@/features/fleet/search";
import { parseHistorySearch, parseSeriesSearch } from "@/features/history/search";
import { parseLoadSearch } from "@/features/load/search";
import { parseMatrixSearch } from "@/features/matrix/search";
import { parseReportsSearch } from "@/features/reports/search";
import { parseRunSearch } from "@/features/run/search";
import { parseSettingsSearch } from "@/features/settings/search";

import { NotFound } from "./NotFound";
import { Shell } from "./Shell";

/** A page whose code is fetched when it is first opened; while the server is away the page waits for it. */
function lazyPage<M extends Record<string, unknown>, K extends keyof M>(load: () => Promise<M>, name: K) {
  return lazyRouteComponent(() => loadPart(load), name);
}

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });

const overview = createRoute({
  getParentRoute: () => root,
  path: "/",
  component: lazyPage(() => import("@/features/overview/Overview"), "Overview"),
});

const experiments = createRoute({
  getParentRoute: () => root,
  path: "/experiments",
  validateSearch: parseListSearch,
  component: lazyPage(() => import("@/features/experiments/Experiments"), "Experiments"),
});

const experiment = createRoute({
  getParentRoute: () => root,
  path: "/experiments/$experimentId",
  validateSearch: parseExperimentSearch,
  component: lazyPage(() => import("@/features/experiment/Experiment"), "Experiment"),
});

const importing = createRoute({
  getParentRoute: () => root,
  path: "/import",
  component: lazyPage(() => import("@/features/import/Import"), "Import"),
});

const compare = createRoute({
  getParentRoute: () => root,
  path: "/compare",
  validateSearch: parseCompareSearch,
  component: lazyPage(() => import("@/features/compare/Compare"), "Compare"),
});

const matrix = createRoute({
  getParentRoute: () => root,
  path: "/matrix",
  validateSearch: parseMatrixSearch,
  component: lazyPage(() => import("@/features/matrix/Matrix"), "Matrix"),
});

const series = createRoute({
  getParentRoute: () => root,
  path: "/history",
  validateSearch: parseSeriesSearch,
  component: lazyPage(() => import("@/features/history/Series"), "Series"),
});

const history = createRoute({
  getParentRoute: () => root,
  path: "/history/$seriesId",
  validateSearch: parseHistorySearch,
  component: lazyPage(() => import("@/features/history/History"), "History"),
});

const schedules = createRoute({
  getParentRoute: () => root,
  path: "/schedules",
  component: lazyPage(() => import("@/features/schedules/Schedules"), "Schedules"),
});

const schedule = createRoute({
  getParentRoute: () => root,
  path: "/schedules/$scheduleId",
  component: lazyPage(() => import("@/features/schedules/Schedule"), "Schedule"),
});

const alarms = createRoute({
  getParentRoute: () => root,
  path: "/alarms",
  component: lazyPage(() => import("@/features/alarms/Alarms"), "Alarms"),
});

const alarm = createRoute({
  getParentRoute: () => root,
  path: "/alarms/$alarmId",
  component: lazyPage(() => import("@/features/alarms/Alarm"), "Alarm"),
});

const reports = createRoute({
  getParentRoute: () => root,
  path: "/reports",
  validateSearch: parseReportsSearch,
  component: lazyPage(() => import("@/features/reports/Reports"), "Reports"),
});

const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  validateSearch: parseSettingsSearch,
  component: lazyPage(() => import("@/features/settings/Settings"), "Settings"),
});

const run = createRoute({
  getParentRoute: () => root,
  path: "/run",
  validateSearch: parseRunSearch,
  component: lazyPage(() => import("@/features/run/Run"), "Run"),
});

const load = createRoute({
  getParentRoute: () => root,
  path: "/load",
  validateSearch: parseLoadSearch,
  component: lazyPage(() => import("@/features/load/Load"), "Load"),
});

const fleet = createRoute({
  getParentRoute: () => root,
  path: "/fleet",
  validateSearch: parseFleetSearch,
  component: lazyPage(() => import("@/features/fleet/Fleet"), "Fleet"),
});

const device = createRoute({
  getParentRoute: () => root,
  path: "/fleet/$agentId",
  validateSearch: parseDeviceSearch,
  component: lazyPage(() => import("@/features/device/Device"), "Device"),
});

const monitoring = createRoute({
  getParentRoute: () => root,
  path: "/monitoring",
  component: lazyPage(() => import("@/features/monitoring/Monitoring"), "Monitoring"),
});

export const routeTree = root.addChildren([
  overview,
  experiments,
  experiment,
  importing,
  compare,
  matrix,
  series,
  history,
  schedules,
  schedule,
  alarms,
  alarm,
  reports,
  settings,
  run,
  load,
  fleet,
  device,
  monitoring,
]);

export const router = createRouter({
  routeTree,
  defaultPreload: "intent",
  defaultPendingComponent: Loading,
  defaultErrorComponent: Failure,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
