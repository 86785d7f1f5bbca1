// Queries and actions of the alarm pages.
import { queryOptions } from "@tanstack/react-query";

import { api, readBody } from "@/api/client";
import type { NewAlarm } from "@/api/schema";

export function alarmsQuery() {
  return queryOptions({
    queryKey: ["alarms"],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/alarms", { params: { query: { limit: 500 } }, signal })),
  });
}

const pathOf = (alarmId: string) => ({ path: { alarm_id: alarmId } });

export function alarmQuery(alarmId: string) {
  return queryOptions({
    queryKey: ["alarm", alarmId],
    queryFn: ({ signal }) => readBody(api.GET("/api/v1/alarms/{alarm_id}", { params: pathOf(alarmId), signal })),
  });
}

export function incidentsQuery(alarmId: string) {
  return queryOptions({
    queryKey: ["alarm", alarmId, "incidents"],
    queryFn: ({ signal }) =>
      readBody(
        api.GET("/api/v1/alarms/{alarm_id}/incidents", {
          params: { ...pathOf(alarmId), query: { limit: 200 } },
          signal,
        }),
      ),
  });
}

export function deliveriesQuery(alarmId: string) {
  return queryOptions({
    queryKey: ["alarm", alarmId, "deliveries"],
    queryFn: ({ signal }) =>
      readBody(
        api.GET("/api/v1/alarms/{alarm_id}/deliveries", {
          params: { ...pathOf(alarmId), query: { limit: 200 } },
          signal,
        }),
      ),
  });
}

export async function addAlarm(body: NewAlarm) {
  return readBody(api.POST("/api/v1/alarms", { body }));
}

export async function testAlarm(alarmId: string) {
  return readBody(api.POST("/api/v1/alarms/{alarm_id}/test", { params: pathOf(alarmId) }));
}

export async function removeAlarm(alarmId: string) {
  return readBody(api.DELETE("/api/v1/alarms/{alarm_id}", { params: pathOf(alarmId) }));
}
