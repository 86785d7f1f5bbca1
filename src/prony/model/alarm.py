"""Alarms: what happens, on which condition who is told of it, and what became of the message."""

from __future__ import annotations

import math
import re
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field

from prony.model.agent import Name
from prony.model.base import Noun
from prony.model.metric import METRICS, STATISTICS, key_of, publish_name
from prony.model.quantity import DurationNs, duration_text

Kind = Literal[
    "threshold", "regression", "suspect", "gate_failed", "agent_lost", "schedule_missed", "experiment_failed"
]
# As they are written; a comparison is a threshold.
WORDS: dict[str, Kind] = {
    "regression": "regression",
    "suspect": "suspect",
    "gate failed": "gate_failed",
    "agent lost": "agent_lost",
    "schedule missed": "schedule_missed",
    "experiment failed": "experiment_failed",
}
# Before the name of a number that only its script knows.
_OF_SCRIPT = "script:"
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_COMPARISON = re.compile(rf"(?P<key>\S+)\s*(?P<sign>>=|<=|>|<)\s*(?P<limit>{_NUMBER})\s*(?P<unit>\S*)", re.IGNORECASE)


class AlarmCondition(Noun):
    """`key`, `sign` and `limit` belong to a threshold; the limit is in the metric's own unit."""

    kind: Kind
    key: str = ""
    sign: Literal["", ">", ">=", "<", "<="] = ""
    limit: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a condition; a ValueError says what is wrong with it."""
        words = " ".join(text.split())
        if words.lower() in WORDS:
            return cls(kind=WORDS[words.lower()])
        found = _COMPARISON.fullmatch(words)
        if found is None:
            known = ", ".join(repr(word) for word in WORDS)
            raise ValueError(
                f"{text[:80]!r} is not a condition: write a threshold as 'inference_ms.p99 > 20', or {known}"
            )
        if found["key"].startswith(_OF_SCRIPT):
            key, limit = _script_key(found["key"].removeprefix(_OF_SCRIPT)), _script_limit(found)
        else:
            _check_key(found["key"])
            key, limit = found["key"], _limit(float(found["limit"]), found["unit"], found["key"])
        return cls.model_validate({"kind": "threshold", "key": key, "sign": found["sign"], "limit": limit})

    def holds(self, value: float, low: float | None, high: float | None) -> bool | None:
        """Tell whether a number is beyond the threshold for certain, or within it; None where nobody can say.

        Beyond is only what is so with the whole interval; within is what is so with the value itself.
        """
        near = low if self.sign.startswith(">") else high
        if near is not None and self._is_beyond(near):
            return True
        return None if math.isnan(value) or self._is_beyond(value) else False

    def _is_beyond(self, value: float) -> bool:
        match self.sign:
            case ">":
                return value > self.limit
            case ">=":
                return value >= self.limit
            case "<":
                return value < self.limit
            case _:
                return value <= self.limit


@lru_cache(maxsize=1024)
def condition_of(text: str) -> AlarmCondition:
    """Return the condition that a text means; the same text is read once."""
    return AlarmCondition.parse(text)


def _check_key(text: str) -> None:
    key = key_of(text)
    if key.metric not in METRICS:
        from difflib import get_close_matches

        near = get_close_matches(key.metric, METRICS, n=1)
        hint = f": did you mean {near[0]}?" if near else f"; for a script's own metric, write {_OF_SCRIPT}{key.metric}"
        raise ValueError(f"no metric is called {key.metric!r}{hint}")
    rest = text.removeprefix(key.metric)
    if not key.statistic and not key.operation and rest:
        raise ValueError(f"{rest.lstrip('.')!r} is not a statistic: use one of {', '.join(STATISTICS)}")


def _script_key(text: str) -> str:
    """Return the key of what a script calls its own: any name, and its median where no statistic is said."""
    key = key_of(text)
    rest = "" if key.operation else text.removeprefix(key.metric)
    if key.metric != publish_name(key.metric) or rest not in ("", f".{key.statistic}"):
        raise ValueError(
            f"{text!r} is not a script's metric: its name has letters, digits and '_', and after a dot comes one of "
            f"{', '.join(STATISTICS)}"
        )
    return text if key.statistic else f"{text}.p50"


def _script_limit(found: re.Match[str]) -> float:
    if found["unit"]:
        raise ValueError(
            f"the unit of {found['key']} comes from its script: write the threshold without {found['unit']}"
        )
    return float(found["limit"])


def _limit(value: float, unit: str, key: str) -> float:
    own = METRICS[key_of(key).metric].unit
    if unit == "%" and own == "1":
        return value / 100
    if unit not in ("", own):
        raise ValueError(f"{key_of(key).metric} is in {own}: write its threshold in {own}, not in {unit}")
    return value


def _good_condition(text: str) -> str:
    AlarmCondition.parse(text)
    return " ".join(text.split())


When = Annotated[
    str,
    Field(min_length=1, max_length=300, examples=["inference_ms.p99 > 20", "experiment failed"]),
    AfterValidator(_good_condition),
]


QUIET_NS = 10 * 60 * 10**9
AGAIN_NS = 24 * 3600 * 10**9
FactValue = str | int | float | bool | None


class Severity(StrEnum):
    """How urgent an alarm is."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Happening(Noun):
    """Something that an alarm may wait for. `subject` names what it is about: the same one ends it, when `is_over`.

    `facts` are for people and programs; `recipe` among them is what an alarm for one recipe looks at.
    """

    kind: Kind
    subject: Annotated[str, Field(min_length=1, max_length=300)]
    severity: Severity = Severity.WARNING
    facts: dict[str, FactValue] = {}
    at: datetime
    is_over: bool = False
    text: str = ""


# What an alarm is aimed at: labels that all must be so, and who submitted it.
Aim = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=100)], Annotated[str, Field(max_length=100)]],
    Field(max_length=20),
]
Owner = Annotated[str, Field(min_length=1, max_length=128)]


def _lasting(default_ns: int, description: str) -> Any:
    shown: dict[str, Any] = {"default": duration_text(default_ns)}
    return Field(default=default_ns, description=description, json_schema_extra=shown)


class RecipeAlarm(Noun):
    """An alarm for this recipe alone. It uses the addresses of the server's alarms, which are secret."""

    name: Name = Field(
        description="name of the alarm; the server puts the recipe's name and a dot before it", examples=["slow"]
    )
    when: When = Field(description="a condition: `inference_ms.p99 > 20` or `experiment failed`")
    severity: Severity = Field(default=Severity.WARNING, description="how urgent it is")
    to: Annotated[tuple[Annotated[Name, Field(examples=["ops"])], ...], Field(max_length=20)] = Field(
        default=(), description="names of alarms on the server whose addresses to use"
    )
    labels: Aim = Field(
        default={},
        description="only for experiments with all these labels; default: any",
        examples=[{"team": "vision"}],
    )
    owner: Owner | None = Field(default=None, description="only for experiments of this submitter; default: any")
    quiet: DurationNs = _lasting(QUIET_NS, "the shortest time between two messages")
    again: DurationNs = _lasting(AGAIN_NS, "when to repeat the message of an alarm that has not ended")


Address = Annotated[
    str, Field(min_length=4, max_length=2000, pattern=r"^[a-zA-Z][a-zA-Z0-9+._-]{1,40}://[^\s\x00-\x1f]+$")
]


class NewAlarm(Noun):
    """`to` are addresses: webhook+https://, or any that apprise knows. `via`: alarms whose addresses are told too.

    `recipe`, `labels` and `owner` aim it: all that are given must hold of what it is about."""

    name: Name
    when: When
    severity: Severity = Severity.WARNING
    to: Annotated[tuple[Address, ...], Field(max_length=20)] = ()
    via: Annotated[tuple[Name, ...], Field(max_length=20)] = ()
    recipe: Name | None = None
    labels: Aim = {}
    owner: Owner | None = None
    quiet: DurationNs = QUIET_NS
    again: DurationNs = AGAIN_NS


class Alarm(Noun):
    """`to` are the addresses as they may be shown; what is secret in them never leaves the server."""

    id: str
    name: str
    when: str
    severity: Severity = Severity.WARNING
    to: tuple[str, ...] = ()
    via: tuple[str, ...] = ()
    recipe: str | None = None
    labels: dict[str, str] = {}
    owner: str | None = None
    quiet: DurationNs = QUIET_NS
    again: DurationNs = AGAIN_NS
    created_at: datetime
    created_by: str = ""
    open: int = 0
    told_at: datetime | None = None

    @property
    def condition(self) -> AlarmCondition:
        return condition_of(self.when)


class MadeAlarm(Noun):
    """`secret` signs what is sent to webhooks. It is told this one time."""

    alarm: Alarm
    secret: str


class Incident(Noun):
    """Something that an alarm found, from its beginning to its end; `count` is how often it happened meanwhile."""

    id: int
    alarm: str
    subject: str
    severity: Severity
    text: str = ""
    opened_at: datetime
    last_at: datetime
    closed_at: datetime | None = None
    told_at: datetime | None = None
    count: int = 1


class Message(Noun):
    """What is sent: all that an alarm gathered, as one. `items` are the first few of `count`."""

    kind: Literal["firing", "again", "resolved", "test"]
    alarm: str
    when: str
    severity: Severity
    count: int
    items: tuple[Happening, ...] = ()
    at: datetime
    text: str
    link: str = ""


class Try(Noun):
    """One attempt to deliver; `said` is what the other side answered, or why it could not be asked."""

    at: datetime
    ok: bool
    said: str = ""


class Delivery(Noun):
    """One message to one address. `id` is the same for every try, so that who was told twice can know it."""

    id: str
    alarm: str
    kind: str
    address: str
    state: Literal["waiting", "sending", "delivered", "failed"]
    tries: tuple[Try, ...] = ()
    created_at: datetime
    ended_at: datetime | None = None
    next_at: datetime | None = None


class TestAnswer(Noun):
    """What came of a test message, for each address."""

    __test__ = False  # not one of pytest's

    deliveries: tuple[Delivery, ...]

    @property
    def ok(self) -> bool:
        return bool(self.deliveries) and all(one.state == "delivered" for one in self.deliveries)
