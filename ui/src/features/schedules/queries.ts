// Queries and actions of the schedule pages.
import { queryOptions } from "@tanstack/react-query";

import { api, readBody } from "@/api/client";
import type { NewSchedule } from "@/api/schema";

export function schedulesQuery() {
  return queryOptions({
    queryKey: ["schedules"],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/schedules", { params: { query: { limit: 500 } }, signal })),
  });
}

export function scheduleQuery(scheduleId: string) {
  return queryOptions({
    queryKey: ["schedule", scheduleId],
    queryFn: ({ signal }) =>
      readBody(api.GET("/api/v1/schedules/{schedule_id}", { params: { path: { schedule_id: scheduleId } }, signal })),
  });
}

export function firesQuery(scheduleId: string) {
  return queryOptions({
    queryKey: ["fires", scheduleId],
    queryFn: ({ signal }) =>
      readBody(
        api.GET("/api/v1/schedules/{schedule_id}/fires", {
          params: { path: { schedule_id: scheduleId }, query: { limit: 200 } },
          signal,
        }),
      ),
  });
}

export async function addSchedule(body: NewSchedule) {
  return readBody(api.POST("/api/v1/schedules", { body }));
}

const pathOf = (scheduleId: string) => ({ params: { path: { schedule_id: scheduleId } } });

export async function pauseSchedule(scheduleId: string) {
  return readBody(api.POST("/api/v1/schedules/{schedule_id}/pause", pathOf(scheduleId)));
}

export async function resumeSchedule(scheduleId: string) {
  return readBody(api.POST("/api/v1/schedules/{schedule_id}/resume", pathOf(scheduleId)));
}

export async function runSchedule(scheduleId: string) {
  return readBody(api.POST("/api/v1/schedules/{schedule_id}/run", pathOf(scheduleId)));
}

export async function removeSchedule(scheduleId: string) {
  return readBody(api.DELETE("/api/v1/schedules/{schedule_id}", pathOf(scheduleId)));
}
