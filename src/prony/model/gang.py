"""A gang: agents that run one job together, each a part of it; where they meet, and whose clock is how late."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from prony.model.base import Noun

MOST_SAID = 200_000


class Part(Noun):
    """Which part of a job one agent has. The first one starts a load's service, and is where a script's nodes meet."""

    index: int = Field(ge=0)
    of: int = Field(ge=2)


class ClockReading(Noun):
    """The server's monotonic clock when a question came, and when its answer was written."""

    received_ns: int
    answered_ns: int


class Offset(Noun):
    """What to add to this machine's monotonic clock to have the server's, and by how much that may be wrong."""

    offset_ns: int
    uncertainty_ns: int


class Meeting(Noun):
    """One member has come to a meeting; `says` is what it tells the others."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]
    says: Annotated[str, Field(max_length=MOST_SAID)] = ""
    wait_s: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)] = 10
    # The slowest that its clock was read: all begin so much later that the answer reaches it in time.
    round_trip_ns: Annotated[int, Field(ge=0)] = 0


class Met(Noun):
    """All have come: what each said, by the number of its part, and when all go on, by the server's clock."""

    said: tuple[str, ...]
    at_ns: int


class Told(Noun):
    """The same as a runner hears it: the instant is by its own machine's clock."""

    name: str
    said: tuple[str, ...]
    at_ns: int
    clock: Offset
