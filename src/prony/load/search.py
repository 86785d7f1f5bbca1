"""Search for the highest load that holds the SLO, probe by probe.

The load is doubled until it does not hold, then the gap between the highest that held and the lowest that did not is
halved. A probe is judged on the share of good requests with its interval, so it holds, does not hold, or leaves it
open. What is open is probed again, longer; what stays open is decided by its share alone, and told.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING

from prony.errors import InputError
from prony.stats.intervals import rate_interval

if TYPE_CHECKING:
    from prony.model.load import Load

ATTEMPTS = 3  # of one load: the first, and two that last longer
_EVERY_REQUEST = 0.99  # a limit of each request holds in a search when so large a share of them is within it
_PERCENTILE = re.compile(r"p([0-9]{1,2}(?:\.[0-9]{1,6})?)")


@dataclass(frozen=True)
class SloShare:
    """At least `share` of the requests have a `metric` of at most `limit`."""

    metric: str
    share: float
    limit: float


@dataclass(frozen=True)
class SearchProbe:
    """What one probe showed; `held` is None where it left it open, and `leans` is what its share alone would say."""

    load: float
    held: bool | None
    leans: bool = False


@dataclass(frozen=True)
class Found:
    """`highest_held` is None where nothing was shown to hold, `lowest_not_held` where everything was."""

    highest_held: float | None
    lowest_not_held: float | None
    probes: tuple[SearchProbe, ...]
    notes: tuple[str, ...]


class _State(Enum):
    """What is known of one load. One that leans to holding is not probed longer before a higher one has failed: at a
    low load there are few requests, and where a higher one holds nobody needs to know."""

    HELD = "held"
    LEANS = "leans"
    OPEN = "open"
    NOT_HELD = "not held"


class LoadSearch:
    """Asks for one probe after another: `next` says which load, `tell` or `count` says what came of it."""

    def __init__(self, low: float, high: float, *, precision: float = 0.05, integral: bool = True) -> None:
        self._low = float(max(1, round(low))) if integral else low
        self._high = float(math.floor(high)) if integral else high
        if not 0 < self._low <= self._high:
            told = f"the search's low ({low:g}) must be positive and at most its high ({high:g})"
            raise InputError(told, hint="set load.search.low and load.search.high")
        self._precision = precision
        self._integral = integral
        self._probes: list[SearchProbe] = []

    @property
    def attempt(self) -> int:
        """Which attempt at its load the next probe is, from 1; each may last twice as long as the one before."""
        load = self.next()
        return 1 + sum(probe.load == load for probe in self._probes)

    def next(self) -> float | None:
        """Return the load to probe, None where the search is over."""
        last = self._probes[-1].load if self._probes else None
        if last is not None and self._state(last) is _State.OPEN:
            return last
        held, not_held = self._limits()
        wider = self._above(held) if not_held is None else self._between(held, not_held)
        if wider is None and held is not None and self._state(held) is _State.LEANS:
            return held
        return wider

    def tell(self, load: float, held: bool | None, *, leans: bool = False) -> None:
        """Take what a probe showed. It may be one that was not asked for, as from an earlier search."""
        self._probes.append(SearchProbe(load, held, leans))

    def count(self, load: float, limits: Iterable[tuple[int, int, float]]) -> None:
        """Take what a probe showed as counts: of each limit the good requests, all of them, and the share wanted."""
        counted = list(limits)
        held = all_held(judge_share(good, total, share) for good, total, share in counted)
        self.tell(load, held, leans=all(good >= share * total > 0 for good, total, share in counted))

    def current_result(self) -> Found:
        """Return what is known so far, with everything that speaks against it."""
        held, not_held = self._limits()
        return Found(held, not_held, tuple(self._probes), tuple(self._notes(held, not_held)))

    def _above(self, held: float | None) -> float | None:
        """Return twice the highest load that held; None at the end."""
        if held is None:
            return self._low
        return None if held >= self._high else min(held * 2, self._high)

    def _between(self, held: float | None, not_held: float) -> float | None:
        """Return the middle of the gap; None where it is narrow enough, or nothing below was asked for."""
        if held is None:
            return self._low if self._low < not_held else None
        if not_held - held <= self._precision * not_held:
            return None
        middle = (held + not_held) / 2
        if not self._integral:
            return middle if held < middle < not_held else None
        return None if not_held - held <= 1 else float(math.floor(middle))

    def _state(self, load: float) -> _State:
        probes = [probe for probe in self._probes if probe.load == load]
        answers = {probe.held for probe in probes}
        # One that both held and did not is not to be relied upon.
        if False in answers:
            return _State.NOT_HELD
        if True in answers:
            return _State.HELD
        if len(probes) < ATTEMPTS:
            return _State.LEANS if probes[-1].leans else _State.OPEN
        return _State.HELD if probes[-1].leans else _State.NOT_HELD

    def _limits(self) -> tuple[float | None, float | None]:
        """Return the highest load that held, or leans to it, below the lowest that did not, and that one."""
        states = {probe.load: self._state(probe.load) for probe in self._probes}
        lowest = min((load for load, state in states.items() if state is _State.NOT_HELD), default=None)
        held = (load for load, state in states.items() if state in (_State.HELD, _State.LEANS))
        return max((load for load in held if lowest is None or load < lowest), default=None), lowest

    def _notes(self, held: float | None, not_held: float | None) -> Iterable[str]:
        if held is None:
            yield "no load met the SLO"
        elif not_held is None and held >= self._high:
            yield f"{held:g} met the SLO, and no higher load was tried"
        for load in sorted({probe.load for probe in self._probes}):
            answers = [probe.held for probe in self._probes if probe.load == load]
            state = self._state(load)
            if True in answers and False in answers:
                yield f"{load:g} once met the SLO and once did not: it counts as not met"
            elif True in answers and not_held is not None and load > not_held:
                yield f"{load:g} met the SLO although the lower load {not_held:g} did not: the limit is not sharp"
            elif state is _State.NOT_HELD and False not in answers:
                yield f"{load:g} was inconclusive after {len(answers)} probes: it counts as not met"
            elif load == held and True not in answers:
                yield f"{load:g} was within the SLO, but {len(answers)} probes had too few requests to be sure"


def judge_share(good: int, total: int, share: float, *, confidence: float = 0.95) -> bool | None:
    """Say whether at least `share` of requests are good: True or False where the whole interval says so, else None.

    Requests of several probes of one load may be counted together.
    """
    interval = rate_interval(good, total, confidence)
    if interval is None:
        return None
    low, high = interval
    if low >= share:
        return True
    return False if high < share else None


def all_held(answers: Iterable[bool | None]) -> bool | None:
    """Return what several limits say together: one that is not held decides, else one that is open."""
    given = list(answers)
    if False in given:
        return False
    return None if None in given else True


def slo_as_shares(slo: Mapping[str, float]) -> tuple[SloShare, ...]:
    """Return the limits of an SLO as shares: `ttft_ms.p99: 200` wants 99 % within 200, and so does `ttft_ms: 200`."""
    return tuple(_limit_as_share(key, limit) for key, limit in slo.items())


def _limit_as_share(key: str, limit: float) -> SloShare:
    metric, _, suffix = key.partition(".")
    if not suffix:
        return SloShare(metric, _EVERY_REQUEST, limit)
    match = _PERCENTILE.fullmatch(suffix)
    if match is None or float(match[1]) == 0:
        raise InputError(f"a search cannot use {key}", hint=f"use a percentile: {metric}.p99")
    # Decimal, because 99.9 / 100 in floats is not 0.999.
    return SloShare(metric, float(Decimal(match[1]) / 100), limit)


def plan_search(load: Load) -> LoadSearch:
    """Return the search that a load asks for."""
    way = load.search
    if way is None:
        raise InputError("this load is not a search", hint="set load.search")
    return LoadSearch(way.low, way.high, precision=way.precision, integral=way.over == "concurrency")


def probe_load(load: Load, level: float, attempt: int = 1) -> Load:
    """Return the load of one probe: closed or open at a level, twice as long for each attempt after the first."""
    from prony.model.load import Closed, Open

    way = load.search
    if way is None:
        raise InputError("this load is not a search", hint="set load.search")
    lasting = {"search": None, "duration": way.probe * 2 ** (attempt - 1), "requests": None}
    if way.over == "concurrency":
        return load.model_copy(update=lasting | {"closed": Closed(concurrency=round(level))})
    return load.model_copy(update=lasting | {"open": Open(rate=level, arrivals=way.arrivals)})
