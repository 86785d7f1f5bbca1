// What schedules ask of the server, and what a person may do to them.
import { queryOptions } from "@tanstack/react-query";

import { api, got } from "@/api/client";
import type { NewSchedule } from "@/api/schema";

export function schedulesQuery() {
  return queryOptions({
    queryKey: ["schedules"],
    queryFn: ({ signal }) => got(api.GET("/api/v1/schedules", { params: { query: { limit: 500 } }, signal })),
  });
}

export function scheduleQuery(scheduleId: string) {
  return queryOptions({
    queryKey: ["schedule", scheduleId],
    queryFn: ({ signal }) => got(api.GET("/api/v1/schedules/{schedule_id}", { params: { path: { schedule_id: scheduleId } }, signal })),
  });
}

export function firesQuery(scheduleId: string) {
  return queryOptions({
    queryKey: ["fires", scheduleId],
    queryFn: ({ signal }) =>
      got(api.GET("/api/v1/schedules/{schedule_id}/fires", { params: { path: { schedule_id: scheduleId }, query: { limit: 200 } }, signal })),
  });
}

export async function addSchedule(body: NewSchedule) {
  return got(api.POST("/api/v1/schedules", { body }));
}

const at = (scheduleId: string) => ({ params: { path: { schedule_id: scheduleId } } });

export async function pauseSchedule(scheduleId: string) {
  return got(api.POST("/api/v1/schedules/{schedule_id}/pause", at(scheduleId)));
}

export async function resumeSchedule(scheduleId: string) {
  return got(api.POST("/api/v1/schedules/{schedule_id}/resume", at(scheduleId)));
}

export async function runSchedule(scheduleId: string) {
  return got(api.POST("/api/v1/schedules/{schedule_id}/run", at(scheduleId)));
}

export async function removeSchedule(scheduleId: string) {
  return got(api.DELETE("/api/v1/schedules/{schedule_id}", at(scheduleId)));
}
