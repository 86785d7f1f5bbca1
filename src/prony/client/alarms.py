"""Operations on alarms: make one, list, see what it found and sent, try it out, remove it."""

from __future__ import annotations

from prony.client.request_shapes import Asking
from prony.model.alarm import Alarm, Delivery, Incident, MadeAlarm, NewAlarm, TestAnswer
from prony.model.queue import Page

# A test waits for every address in turn.
_TEST_S = 120.0


class Alarms(Asking):
    """An alarm is named by its id or its name."""

    def add_alarm(self, alarm: NewAlarm) -> MadeAlarm:
        """Make one; the secret that signs its webhooks is in this answer and never again."""
        return self._send(MadeAlarm, "POST", "alarms", body=alarm)

    def alarms(self, *, limit: int = 100, cursor: str | None = None) -> Page[Alarm]:
        return self._get(Page[Alarm], "alarms", limit=limit, cursor=cursor)

    def alarm(self, alarm_id: str) -> Alarm:
        return self._get(Alarm, "alarms", alarm_id)

    def incidents(self, alarm_id: str, *, limit: int = 100, cursor: str | None = None) -> Page[Incident]:
        return self._get(Page[Incident], "alarms", alarm_id, "incidents", limit=limit, cursor=cursor)

    def deliveries(self, alarm_id: str, *, limit: int = 100, cursor: str | None = None) -> Page[Delivery]:
        return self._get(Page[Delivery], "alarms", alarm_id, "deliveries", limit=limit, cursor=cursor)

    def test_alarm(self, alarm_id: str) -> TestAnswer:
        """Really send a message to each of its addresses."""
        return self._send(TestAnswer, "POST", "alarms", alarm_id, "test", wait_s=_TEST_S)

    def remove_alarm(self, alarm_id: str) -> None:
        self._do("DELETE", "alarms", alarm_id)
