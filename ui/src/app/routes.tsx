// The routes of all pages and what their URLs may hold; pages are loaded when they are opened. Add new pages here.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";

import { Failure, Loading } from "@/components/states";
import { parseCompareSearch } from "@/features/compare/search";
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

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });

const overview = createRoute({
  getParentRoute: () => root,
  path: "/",
  component: lazyRouteComponent(() => import("@/features/overview/Overview"), "Overview"),
});

const experiments = createRoute({
  getParentRoute: () => root,
  path: "/experiments",
  validateSearch: parseListSearch,
  component: lazyRouteComponent(() => import("@/features/experiments/Experiments"), "Experiments"),
});

const experiment = createRoute({
  getParentRoute: () => root,
  path: "/experiments/$experimentId",
  validateSearch: parseExperimentSearch,
  component: lazyRouteComponent(() => import("@/features/experiment/Experiment"), "Experiment"),
});

const compare = createRoute({
  getParentRoute: () => root,
  path: "/compare",
  validateSearch: parseCompareSearch,
  component: lazyRouteComponent(() => import("@/features/compare/Compare"), "Compare"),
});

const matrix = createRoute({
  getParentRoute: () => root,
  path: "/matrix",
  validateSearch: parseMatrixSearch,
  component: lazyRouteComponent(() => import("@/features/matrix/Matrix"), "Matrix"),
});

const series = createRoute({
  getParentRoute: () => root,
  path: "/history",
  validateSearch: parseSeriesSearch,
  component: lazyRouteComponent(() => import("@/features/history/Series"), "Series"),
});

const history = createRoute({
  getParentRoute: () => root,
  path: "/history/$seriesId",
  validateSearch: parseHistorySearch,
  component: lazyRouteComponent(() => import("@/features/history/History"), "History"),
});

const schedules = createRoute({
  getParentRoute: () => root,
  path: "/schedules",
  component: lazyRouteComponent(() => import("@/features/schedules/Schedules"), "Schedules"),
});

const schedule = createRoute({
  getParentRoute: () => root,
  path: "/schedules/$scheduleId",
  component: lazyRouteComponent(() => import("@/features/schedules/Schedule"), "Schedule"),
});

const alarms = createRoute({
  getParentRoute: () => root,
  path: "/alarms",
  component: lazyRouteComponent(() => import("@/features/alarms/Alarms"), "Alarms"),
});

const alarm = createRoute({
  getParentRoute: () => root,
  path: "/alarms/$alarmId",
  component: lazyRouteComponent(() => import("@/features/alarms/Alarm"), "Alarm"),
});

const reports = createRoute({
  getParentRoute: () => root,
  path: "/reports",
  validateSearch: parseReportsSearch,
  component: lazyRouteComponent(() => import("@/features/reports/Reports"), "Reports"),
});

const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  validateSearch: parseSettingsSearch,
  component: lazyRouteComponent(() => import("@/features/settings/Settings"), "Settings"),
});

const run = createRoute({
  getParentRoute: () => root,
  path: "/run",
  validateSearch: parseRunSearch,
  component: lazyRouteComponent(() => import("@/features/run/Run"), "Run"),
});

const load = createRoute({
  getParentRoute: () => root,
  path: "/load",
  validateSearch: parseLoadSearch,
  component: lazyRouteComponent(() => import("@/features/load/Load"), "Load"),
});

const fleet = createRoute({
  getParentRoute: () => root,
  path: "/fleet",
  validateSearch: parseFleetSearch,
  component: lazyRouteComponent(() => import("@/features/fleet/Fleet"), "Fleet"),
});

const monitoring = createRoute({
  getParentRoute: () => root,
  path: "/monitoring",
  component: lazyRouteComponent(() => import("@/features/monitoring/Monitoring"), "Monitoring"),
});

export const routeTree = root.addChildren([
  overview,
  experiments,
  experiment,
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
