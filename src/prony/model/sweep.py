"""What analysis says of several loads that differ in how much load there was: curves, claims and their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from prony.model.base import Noun
from prony.model.estimate import Estimate, Grade


class LimitState(StrEnum):
    """Of a limit at one level: on which side the whole interval lies."""

    HELD = "held"
    VIOLATED = "violated"
    CANNOT_TELL = "cannot tell"

    @property
    def word(self) -> str:
        """What people read; the value is what programs have read since the first version."""
        return "undecided" if self is LimitState.CANNOT_TELL else self.value


class LimitCheck(Noun):
    """One limit of a run at one level; a failed request counts as one that never ended."""

    key: str
    limit: float
    state: LimitState
    estimate: Estimate | None = None
    text: str


class Clue(Noun):
    """One measured series: what it reached at one level, and from where on it would be a limit.

    `threshold` is None for what is only shown; `is_over` says whether it speaks for a bottleneck.
    """

    side: Literal["client", "server", "machine"]
    series: str
    value: float
    unit: str = "1"
    threshold: float | None = None
    is_over: bool = False
    text: str


class Bottleneck(Noun):
    """Where the limit was. `none`: everything that was watched had room to spare; `unknown`: too little was watched."""

    where: Literal["client", "server", "machine", "others", "none", "unknown"]
    what: Literal[
        "cpu", "gpu", "gpu compute", "gpu bandwidth", "gpu memory", "memory", "disk", "network", "queue", ""
    ] = ""
    text: str
    clues: tuple[Clue, ...] = ()


class Level(Noun):
    """One level of load: `load` users or requests a second, with all that was measured there."""

    load: float
    jobs: tuple[str, ...]
    throughput: Estimate | None = None
    goodput: Estimate | None = None
    p50: Estimate | None = None
    p99: Estimate | None = None
    errors: Estimate | None = None
    checks: tuple[LimitCheck, ...] = ()
    grade: Grade
    # Whether a load here ended before it had sent all requests.
    ended_early: Literal["", "cut", "stopped"] = ""
    bottleneck: Bottleneck | None = None
    # Why this level takes no part in the claims; empty where it does.
    excluded: str = ""


class Claim(Noun):
    """A statement with the numbers behind it; where it cannot be made, why."""

    state: Literal["found", "not found", "cannot tell", "refused"]
    estimate: Estimate | None = None
    text: str


class Curve(Noun):
    """Levels that differ in load and in nothing else."""

    title: str
    noun: str
    levels: tuple[Level, ...]
    knee: Claim
    limit: Claim
    slo: Claim | None = None


class SweepReport(Noun):
    """`gain_share`: a knee is where more load brings less than this share of what it brought at first."""

    experiments: tuple[str, ...]
    slo: dict[str, float] = {}
    gain_share: float
    curves: tuple[Curve, ...]


def format_levels(loads: Sequence[float], noun: str) -> str:
    """Return levels of load with their noun, which is in the singular after a single 1: `1 request a second`."""
    things, space, rest = noun.partition(" ")
    named = things.removesuffix("s") if list(loads) == [1] else things
    return f"{', '.join(f'{load:g}' for load in loads)} {named}{space}{rest}"
