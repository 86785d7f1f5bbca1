"""What happens in, what alarms make of it out: incidents opened and ended, messages gathered, in an open transaction.

Whoever finds something reports it: `siren.report(desk, Happening(...))`, in the transaction in which it is so. Which
alarms there are is only in mind here; one that was removed meanwhile is passed over.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from prony.app.fleet.alarm_events import check_threshold
from prony.model.alarm import Alarm, Happening
from prony.model.condition import Kind
from prony.model.estimate import Summary
from prony.store import alarms as rows
from prony.store import notices
from prony.store.about import about
from prony.store.database import Connection
from prony.store.writer import Transaction

_LONGEST_SUBJECT = 300
# So much of what lasts is told again in one message.
_MOST_AGAIN = 200
# Which alarms hear of what: who waits for a suspicion wants to know of what is certain too.
_HEARS: dict[Kind, frozenset[Kind]] = {"suspect": frozenset({"suspect", "regression"})}


# Their subject is a recipe, of which others have runs too.
_OF_A_RECIPE: frozenset[Kind] = frozenset({"threshold", "experiment_failed", "gate_failed"})


class AlarmEngine:
    """`window_s`: what happens within it is one message."""

    def __init__(self, window_s: float) -> None:
        self.alarms: tuple[Alarm, ...] = ()
        self._window_s = window_s

    def hears(self, kind: Kind) -> bool:
        """Would anybody be told of such a thing? Where not, it need not be found out."""
        return any(kind in _heard(alarm) for alarm in self.alarms)

    def report(self, desk: Transaction, happening: Happening) -> None:
        """Open, count or end what this is about, for every alarm that waits for it."""
        for alarm in self.alarms:
            if happening.kind in _heard(alarm) and _is_aimed_at(alarm, happening, desk.connection):
                self._meet(desk, alarm, _limit_subject(happening))

    def report_result(self, desk: Transaction, recipe: str, summary: Summary, at: datetime) -> None:
        """Hold a result against the thresholds; what may not be quoted says nothing."""
        for alarm in self.alarms:
            if alarm.condition.kind == "threshold" and alarm.recipe in (None, recipe):
                found = check_threshold(alarm, recipe, summary, at)
                if found is not None and _is_aimed_at(alarm, found, desk.connection):
                    self._meet(desk, alarm, _limit_subject(found))

    def remind(self, desk: Transaction, now: datetime) -> None:
        """Gather what was told long ago and has not ended."""
        for alarm in self.alarms:
            before = now - timedelta(microseconds=alarm.again / 1000)
            for happening in rows.lasting(desk.connection, alarm.id, before, _MOST_AGAIN):
                ready_at = now.timestamp() + self._window_s
                notice_id = notices.gather(desk.connection, alarm.id, "again", happening, ready_at=ready_at)
                rows.note(desk.connection, alarm.id, happening.subject, notice_id)
                rows.note_all_told(desk.connection, notice_id, now)

    def has_work(self, connection: Connection, now: datetime) -> bool:
        """Is there anything to tell now? Asked every second, so that nothing is written where there is not."""
        soonest = min(alarm.again for alarm in self.alarms)
        before = now - timedelta(microseconds=soonest / 1000)
        return notices.has_due(connection, now.timestamp()) or rows.has_lasting(connection, before)

    def _meet(self, desk: Transaction, alarm: Alarm, happening: Happening) -> None:
        is_there, told_at = rows.told_at(desk.connection, alarm.id)
        if not is_there:
            return
        soon = happening.at.timestamp() + self._window_s
        if happening.is_over:
            if rows.end(desk.connection, alarm.id, happening.subject, happening.at):
                # Not before it was told that it began.
                begun = notices.gathering_until(desk.connection, alarm.id, "firing") or 0.0
                notices.gather(desk.connection, alarm.id, "resolved", happening, ready_at=max(soon, begun + 1))
            return
        is_new, notice_id = rows.begin(desk.connection, alarm.id, happening)
        if is_new:
            quiet_until = told_at.timestamp() + alarm.quiet / 1e9 if told_at else 0.0
            ready_at = max(soon, quiet_until)
            notice_id = notices.gather(desk.connection, alarm.id, "firing", happening, ready_at=ready_at)
            rows.note(desk.connection, alarm.id, happening.subject, notice_id)
        elif notice_id is not None:
            notices.count_more(desk.connection, notice_id)


def _heard(alarm: Alarm) -> frozenset[Kind]:
    kind = alarm.condition.kind
    return _HEARS.get(kind, frozenset({kind}))


def _is_aimed_at(alarm: Alarm, happening: Happening, connection: Connection) -> bool:
    """Say whether what happened is about what the alarm is for; whose it is, is looked up only where that matters."""
    if alarm.recipe not in (None, happening.facts.get("recipe")):
        return False
    if not alarm.labels and alarm.owner is None:
        return True
    if happening.is_over and happening.kind not in _OF_A_RECIPE:
        return True  # its subject is the one that was told of, whatever labels it has by now
    found = about(connection, happening.facts)
    return alarm.labels.items() <= found.labels.items() and alarm.owner in (None, found.owner)


def _limit_subject(happening: Happening) -> Happening:
    """Return it as it can be kept and sent: no subject that is too long, no number that JSON has no word for."""
    facts = {key: str(value) if _is_odd(value) else value for key, value in happening.facts.items()}
    subject = happening.subject.replace("\0", "\ufffd")[:_LONGEST_SUBJECT]
    return happening.model_copy(update={"facts": facts, "subject": subject})


def _is_odd(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
