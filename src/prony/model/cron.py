"""Schedules: check the cron expression that a person wrote, and compute when it is due in a time zone.

The wall clock of the zone decides. An hour that the zone skips is due once, at the first minute after it. An hour that
it goes through twice is due the first time; only an expression for every hour (`*` or `*/2` there) is due both times.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

from prony.model.base import Noun

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo  # every recipe leads here, and few have a schedule


_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = {name: number for number, name in enumerate(re.findall("...", "janfebmaraprmayjunjulaugsepoctnovdec"), 1)}
_DAYS = {name: number for number, name in enumerate(re.findall("...", "sunmontuewedthufrisat"))}
_SUNDAY = 7  # as the end of a range; alone it is day 0
_PART = re.compile(r"(?P<all>\*)(?:/(?P<each>\d{1,3}))?|(?P<low>\w{1,3})(?:-(?P<high>\w{1,3})(?:/(?P<step>\d{1,3}))?)?")
_TURNED = timedelta(days=1)  # no zone was ever set back by more
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class _Field:
    name: str
    low: int
    high: int
    names: dict[str, int]


_FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of the month", 1, 31, {}),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, _SUNDAY, _DAYS),
)


@dataclass(frozen=True)
class Cron:
    """`fields` are as cronsim reads them: numbers, and what begins with `*` as it was written.

    Of a day and a weekday either is enough, unless one begins with `*`: then both must hold.
    """

    fields: str
    is_every_hour: bool

    def after(self, instant: datetime, zone: ZoneInfo) -> datetime:
        """Return the first due instant after this one, in UTC."""
        return next(self.dues(instant, zone))

    def dues(self, after: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """Yield every due instant after this one, in UTC, for as long as the calendar lasts."""
        begin = after.astimezone(zone).replace(tzinfo=None, fold=0)
        last = after.astimezone(UTC)
        for wall in self._walls(begin):
            due = _instant(wall, zone)
            if due <= last:
                continue
            yield from self._second(last, due, zone)
            yield due
            last = due

    def _second(self, last: datetime, due: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """Yield what is due between the two because the zone goes through an hour for the second time."""
        if not self.is_every_hour or _offset(last - _TURNED, zone) <= _offset(due, zone):
            return
        offset = _offset(due, zone)
        begin, end = ((one.astimezone(UTC) + offset).replace(tzinfo=None) for one in (last, due))
        again = (wall.replace(tzinfo=zone, fold=1) for wall in takewhile(lambda wall: wall < end, self._walls(begin)))
        for wall in again:
            instant = wall.astimezone(UTC)
            if last < instant < due and instant != wall.replace(fold=0).astimezone(UTC):
                yield instant

    def _walls(self, begin: datetime) -> Iterator[datetime]:
        """Yield every time on the wall that fits, from the minute of this one on.

        A wall has no zone: cronsim's own rules for changes of the clocks are others than ours.
        """
        from cronsim import CronSim

        return CronSim(self.fields, begin - _MINUTE)


@lru_cache(maxsize=256)
def parse_cron(text: str) -> Cron:
    """Read an expression of five fields, or a nickname such as @daily; a ValueError says what is wrong with it."""
    words = _NICKNAMES.get(text.strip().lower(), text).split()
    if len(words) != len(_FIELDS):
        known = ", ".join(sorted(_NICKNAMES))
        raise ValueError(
            f"a cron expression has five fields (minute, hour, day of the month, month, day of the week), as in "
            f"'0 3 * * *', or is one of {known}: not {text[:60]!r}"
        )
    values = [_values(word, field) for word, field in zip(words, _FIELDS, strict=True)]
    # By the day of the month alone, some dates never come; a weekday comes in every month.
    days, months = values[2], values[3]
    never = all(min(days) > monthrange(2000, month)[1] for month in months)
    if words[4].startswith("*") and never:
        raise ValueError(f"{text!r} never occurs: the month has no such day")
    values[4] = {one % _SUNDAY for one in values[4]}
    fields = (word if word.startswith("*") else _list(found) for word, found in zip(words, values, strict=True))
    return Cron(" ".join(fields), is_every_hour=words[1].startswith("*"))


def _list(values: set[int]) -> str:
    return ",".join(map(str, sorted(values)))


def _values(word: str, field: _Field) -> set[int]:
    return {value for part in word.split(",") for value in _part(part, field)}


def _part(text: str, field: _Field) -> range:
    found = _PART.fullmatch(text.lower())
    if found is None:
        hint = " (a step follows a range or *: 5-59/15)" if re.fullmatch(r"\w+/\d+", text) else ""
        raise ValueError(f"{text!r} is not a valid {field.name}{hint}")
    if found["all"]:
        top = 6 if field.high == _SUNDAY else field.high
        return range(field.low, top + 1, _step(found["each"], text, field))
    low = _value(found["low"], field)
    if found["high"] is None:
        return range(low, low + 1)
    high = _value(found["high"], field)
    high = _SUNDAY if field.high == _SUNDAY and high == 0 and low > 0 else high
    if high < low:
        raise ValueError(f"the {field.name} {text!r} ends before it begins")
    return range(low, high + 1, _step(found["step"], text, field))


def _step(text: str | None, whole: str, field: _Field) -> int:
    step = 1 if text is None else int(text)
    if step < 1:
        raise ValueError(f"{whole!r} is not a valid {field.name}: a step is at least 1")
    return step


def _value(text: str, field: _Field) -> int:
    if text in field.names:
        return field.names[text]
    if not (text.isascii() and text.isdigit()):
        known = f" or one of {', '.join(field.names)}" if field.names else ""
        raise ValueError(f"{text!r} is not a number{known}: the {field.name} is from {field.low} to {field.high}")
    if not field.low <= int(text) <= field.high:
        raise ValueError(f"the {field.name} is from {field.low} to {field.high}: not {text}")
    return int(text)


# Walls and instants


def _instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return when a wall first shows this; where it never does, the instant at which it jumps over it."""
    instant = wall.replace(tzinfo=zone).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == wall:
        return instant
    before = int(wall.replace(tzinfo=zone, fold=1).timestamp())
    after = int(instant.timestamp())
    old = _offset(datetime.fromtimestamp(before, UTC), zone)
    while after - before > 1:
        middle = (before + after) // 2
        is_old = _offset(datetime.fromtimestamp(middle, UTC), zone) == old
        before, after = (middle, after) if is_old else (before, middle)
    return datetime.fromtimestamp(after, UTC)


def _offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta(0)


def zone_of(name: str) -> ZoneInfo:
    """Return a zone by its name; a ValueError says that there is none."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise ValueError(f"no time zone is called {name[:60]!r}: it is a name such as Europe/Paris or UTC") from exc


def _good_cron(text: str) -> str:
    parse_cron(text)
    return " ".join(text.split())


def _good_zone(name: str) -> str:
    zone_of(name)
    return name


CronText = Annotated[str, Field(min_length=1, max_length=200, examples=["0 3 * * *"]), AfterValidator(_good_cron)]
ZoneName = Annotated[str, Field(min_length=1, max_length=64, examples=["Europe/Paris"]), AfterValidator(_good_zone)]


Missed = Literal["skip", "once", "all"]


class Timing(Noun):
    """When to run, in a time zone, and what to do about missed times."""

    cron: CronText = Field(
        description="five fields (minute, hour, day of month, month, day of week), or @daily and the like"
    )
    zone: ZoneName = Field(default="UTC", description="time zone, such as Europe/Paris")
    missed: Missed = Field(default="once", description="what to run for times when no server was up; skip: nothing")

    def after(self, instant: datetime) -> datetime:
        """Return the first due instant after this one."""
        return next(self.dues(instant))

    def dues(self, after: datetime) -> Iterator[datetime]:
        return parse_cron(self.cron).dues(after, zone_of(self.zone))
