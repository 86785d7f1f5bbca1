"""Alarms of a server."""

from __future__ import annotations

from prony.client.connection import ApiRequests
from prony.model.alarm import Alarm, Delivery, Incident, MadeAlarm, NewAlarm, TestAnswer
from prony.model.queue import Page

# A test waits for every address in turn.
_TEST_S = 120.0


class RemoteAlarms:
    """Alarms; each is named by its id or its name. See `prony.ports.use_cases.AlarmUseCases`."""

    def __init__(self, requests: ApiRequests) -> None:
        self._requests = requests

    def add(self, alarm: NewAlarm) -> MadeAlarm:
        """Make one; the secret that signs its webhooks is in this answer and never again."""
        return self._requests.send(MadeAlarm, "POST", "alarms", body=alarm)

    def page(self, *, limit: int = 100, cursor: str | None = None) -> Page[Alarm]:
        """Return alarms, a page at a time."""
        return self._requests.get(Page[Alarm], "alarms", limit=limit, cursor=cursor)

    def get(self, alarm_id: str) -> Alarm:
        """Return one alarm."""
        return self._requests.get(Alarm, "alarms", alarm_id)

    def incidents(self, alarm_id: str, *, limit: int = 100, cursor: str | None = None) -> Page[Incident]:
        """Return what it found, the newest first."""
        return self._requests.get(Page[Incident], "alarms", alarm_id, "incidents", limit=limit, cursor=cursor)

    def deliveries(self, alarm_id: str, *, limit: int = 100, cursor: str | None = None) -> Page[Delivery]:
        """Return the messages that it sent, the newest first."""
        return self._requests.get(Page[Delivery], "alarms", alarm_id, "deliveries", limit=limit, cursor=cursor)

    def test(self, alarm_id: str) -> TestAnswer:
        """Really send a message to each of its addresses."""
        return self._requests.send(TestAnswer, "POST", "alarms", alarm_id, "test", wait_s=_TEST_S)

    def remove(self, alarm_id: str) -> None:
        """Forget an alarm."""
        self._requests.do("DELETE", "alarms", alarm_id)
