"""Alarms: what happens, who is told of it, and what became of the telling."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from prony.model.agent import Name
from prony.model.base import Noun
from prony.model.condition import Condition, Kind, When, condition_of
from prony.model.quantity import DurationNs, duration_text

QUIET_NS = 10 * 60 * 10**9
AGAIN_NS = 24 * 3600 * 10**9
FactValue = str | int | float | bool | None


class Severity(StrEnum):
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
    """An alarm that comes with a recipe and is for it alone. It names others for their addresses, which are secret."""

    name: Name = Field(description="what this alarm is called, after the recipe's name and a dot", examples=["slow"])
    when: When = Field(description="a threshold as `inference_ms.p99 > 20`, or words as `experiment failed`")
    severity: Severity = Field(default=Severity.WARNING, description="info, warning or critical")
    to: Annotated[tuple[Annotated[Name, Field(examples=["ops"])], ...], Field(max_length=20)] = Field(
        default=(), description="names of alarms on the server whose addresses are told"
    )
    labels: Aim = Field(default={}, description="only of what has all these labels", examples=[{"team": "vision"}])
    owner: Owner | None = Field(default=None, description="only of what this person submitted")
    quiet: DurationNs = _lasting(QUIET_NS, "the least time between two messages")
    again: DurationNs = _lasting(AGAIN_NS, "after so long it is told again, if it has not ended")


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
    def condition(self) -> Condition:
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
