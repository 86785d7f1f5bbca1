// What alarms ask of the server, and what an admin may do to them.
import { queryOptions } from "@tanstack/react-query";

import { api, got } from "@/api/client";
import type { NewAlarm } from "@/api/schema";

export function alarmsQuery() {
  return queryOptions({
    queryKey: ["alarms"],
    queryFn: ({ signal }) => got(api.GET("/api/v1/alarms", { params: { query: { limit: 500 } }, signal })),
  });
}

const at = (alarmId: string) => ({ path: { alarm_id: alarmId } });

export function alarmQuery(alarmId: string) {
  return queryOptions({
    queryKey: ["alarm", alarmId],
    queryFn: ({ signal }) => got(api.GET("/api/v1/alarms/{alarm_id}", { params: at(alarmId), signal })),
  });
}

export function incidentsQuery(alarmId: string) {
  return queryOptions({
    queryKey: ["alarm", alarmId, "incidents"],
    queryFn: ({ signal }) => got(api.GET("/api/v1/alarms/{alarm_id}/incidents", { params: { ...at(alarmId), query: { limit: 200 } }, signal })),
  });
}

export function deliveriesQuery(alarmId: string) {
  return queryOptions({
    queryKey: ["alarm", alarmId, "deliveries"],
    queryFn: ({ signal }) => got(api.GET("/api/v1/alarms/{alarm_id}/deliveries", { params: { ...at(alarmId), query: { limit: 200 } }, signal })),
  });
}

export async function addAlarm(body: NewAlarm) {
  return got(api.POST("/api/v1/alarms", { body }));
}

export async function testAlarm(alarmId: string) {
  return got(api.POST("/api/v1/alarms/{alarm_id}/test", { params: at(alarmId) }));
}

export async function removeAlarm(alarmId: string) {
  return got(api.DELETE("/api/v1/alarms/{alarm_id}", { params: at(alarmId) }));
}
