"""Plan a load's schedule: when each request is due, or how many users there are when.

Everything is decided here, before the first request and from a seed, so that the same load has the same schedule
whatever the number of processes that send it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from prony.errors import InputError
from prony.load import arrivals
from prony.load import arrivals as trace
from prony.load.arrivals import Gaps, RateSegment
from prony.load.mlperf import MlperfRules, rules
from prony.ports.driver import Stamps

if TYPE_CHECKING:  # a client process reads schedules, and needs none of the nouns
    from prony.model.load import Load, Mlperf, Open, Replay, Stage

_S = 10**9


@dataclass(frozen=True)
class RateStep:
    """So many users from an instant on."""

    at_ns: int
    users: int


@dataclass(frozen=True)
class LoadSchedule:
    """Open where it has dues, else closed. Sending ends when `count` are sent, when each user has sent `each`, or when
    `duration_ns` has passed, whichever comes first; `duration_ns` waits for `at_least` requests, `limit_ns` for none.
    """

    dues_ns: Stamps | None = None  # when request i is due after the start, ascending
    steps: tuple[RateStep, ...] = ()  # of a closed load, the first at 0
    think_ns: int = 0
    duration_ns: int | None = None
    count: int | None = None
    each: int | None = None  # of a closed load: requests of each user
    most_in_flight: int | None = None  # those beyond are dropped, and counted
    lengths: Stamps | None = None  # of a trace: (n, 2) input and output tokens, -1 where it does not say
    stages: tuple[tuple[int, int, str], ...] = ()  # begin, end and label, for the reports
    burst: int = 1  # of a closed load: a user sends so many at once, and waits for all of them
    at_least: int = 0
    limit_ns: int | None = None

    @property
    def total(self) -> int | None:
        """How many requests there are at most; None where time alone decides."""
        if self.dues_ns is not None:
            return len(self.dues_ns)
        of_all = None if self.each is None else self.each * max((step.users for step in self.steps), default=0)
        return min((count for count in (self.count, of_all) if count is not None), default=None)


def plan(load: Load, *, base: Path) -> LoadSchedule:
    """Return the schedule of a load; a trace's path is relative to `base`."""
    if load.open is not None:
        return _open(load, load.open)
    if load.stages is not None:
        return _stages(load, load.stages)
    if load.replay is not None:
        return _replay(load, load.replay, base)
    if load.mlperf is not None:
        return _mlperf(load, load.mlperf)
    if load.search is not None:
        raise InputError("a search has no schedule; only its probes have one", hint="use a load without search")
    users = load.users
    return LoadSchedule(
        steps=_start_users(users.concurrency, users.stagger or 0),
        think_ns=users.think or 0,
        duration_ns=load.duration_ns,
        count=load.requests,
        each=users.requests,
    )


def _start_users(users: int, stagger_ns: int) -> tuple[RateStep, ...]:
    """Return the steps of users who come one after another, or all at once."""
    if not stagger_ns:
        return (RateStep(0, users),)
    return tuple(RateStep(number * stagger_ns, number + 1) for number in range(users))


def _open(load: Load, way: Open) -> LoadSchedule:
    gaps = _gaps(way.arrivals, way.burstiness, "load.open")
    duration_ns, seed = load.duration_ns, load.seeds.arrivals
    if duration_ns is None:
        dues = arrivals.count_arrivals(gaps, way.rate, load.requests or 0, seed=seed)
    else:
        level = RateSegment(duration_ns / _S, way.rate, way.rate, gaps)
        dues = arrivals.time_arrivals([level], seed=seed, most=load.requests)
    return _due(dues, duration_ns, way.most_in_flight)


def _gaps(kind: str, burstiness: float, place: str) -> Gaps:
    if kind != "gamma" and burstiness != 1:
        told = f"{place}.burstiness is only for gamma arrivals, but these are {kind}"
        raise InputError(told, hint=f"use {place}.arrivals: gamma, or leave out {place}.burstiness")
    return Gaps(kind, burstiness)


def _due(dues_ns: Stamps, duration_ns: int | None, most_in_flight: int | None = None) -> LoadSchedule:
    """Return an open schedule of what is due before the end; one of nothing is refused."""
    if duration_ns is not None:
        dues_ns = dues_ns[: np.searchsorted(dues_ns, duration_ns)]
    if not dues_ns.size:
        raise InputError("this load is too short to send a request", hint="make it longer, or raise its rate")
    return LoadSchedule(dues_ns, duration_ns=duration_ns, count=int(dues_ns.size), most_in_flight=most_in_flight)


def _stages(load: Load, stages: Sequence[Stage]) -> LoadSchedule:
    of_users = [stage.rate is None for stage in stages]
    if any(of_users) and not all(of_users):
        first = of_users.index(not of_users[0])
        told = f"load.stages[{first}] has a {'concurrency' if of_users[first] else 'rate'}, and those before it do not"
        raise InputError(told, hint="use rates in all stages, or concurrencies in all")
    ends = np.cumsum([stage.duration for stage in stages]).tolist()
    end_ns = min(ends[-1], load.duration or ends[-1])
    spans = tuple(
        (begin, min(end, end_ns), _label(before, stage))
        for (begin, end), (before, stage) in zip(pairwise([0, *ends]), _with_before(stages), strict=True)
        if begin < end_ns
    )
    if of_users[0]:
        steps = tuple(step for step in _steps(stages) if step.at_ns < end_ns)
        return LoadSchedule(steps=steps, duration_ns=end_ns, count=load.requests, stages=spans)
    stretches = [_stretch(before, stage, place) for place, (before, stage) in enumerate(_with_before(stages))]
    dues = arrivals.time_arrivals(stretches, seed=load.seeds.arrivals, most=load.requests)
    return replace(_due(dues, end_ns), stages=spans)


def _with_before(stages: Sequence[Stage]) -> Iterator[tuple[float, Stage]]:
    """Give each stage with the level of the one before; before the first there is none."""
    before = 0.0
    for stage in stages:
        yield before, stage
        before = _level(stage)


def _level(stage: Stage) -> float:
    return float(stage.concurrency or 0) if stage.rate is None else stage.rate


def _label(before: float, stage: Stage) -> str:
    unit = " users" if stage.rate is None else "/s"
    came = f"{before:g} to " if stage.ramp and before != _level(stage) else ""
    return f"{came}{_level(stage):g}{unit}"


def _stretch(before: float, stage: Stage, place: int) -> RateSegment:
    level = _level(stage)
    gaps = _gaps(stage.arrivals, stage.burstiness, f"load.stages[{place}]")
    return RateSegment(stage.duration / _S, before if stage.ramp else level, level, gaps)


def _steps(stages: Sequence[Stage]) -> Iterator[RateStep]:
    """Give a step for each change of the users; in a ramp each comes when the line is nearest to the new number."""
    begin_ns = users = 0
    for stage in stages:
        to = stage.concurrency or 1
        if not stage.ramp:
            if to != users:
                yield RateStep(begin_ns, to)
        else:
            up, changes = (1 if to > users else -1), abs(to - users)
            for change in range(1, changes + 1):
                # Somebody is there from the first instant on: a load of nobody tells nothing.
                halves = 0 if begin_ns == users == 0 and change == 1 else 2 * change - 1
                yield RateStep(begin_ns + stage.duration * halves // (2 * changes), users + up * change)
        begin_ns, users = begin_ns + stage.duration, to


def _replay(load: Load, way: Replay, base: Path) -> LoadSchedule:
    read = trace.read_trace(base / way.file, layout=way.layout)
    dues = arrivals.in_ns(read.dues_ns / way.speed)
    most = min(way.requests or len(dues), load.requests or len(dues))
    made = _due(dues[:most], load.duration)
    return replace(made, lengths=read.lengths[: made.count])


def _mlperf(load: Load, way: Mlperf) -> LoadSchedule:
    """Return a scenario's schedule. The load's own duration and count end it early, and then it is no valid run."""
    rule = rules(way)
    burst, most = rule.samples_per_query, load.requests
    if rule.is_closed:
        return LoadSchedule(
            steps=(RateStep(0, 1),),
            duration_ns=rule.min_duration_ns,
            # Queries are sent whole.
            count=None if most is None else -(-most // burst) * burst,
            burst=burst,
            at_least=rule.min_queries * burst,
            limit_ns=load.duration,
        )
    if way.scenario == "offline":
        arrivals.refuse_too_many(burst)
        samples = min(burst, most or burst)
        return LoadSchedule(
            steps=(RateStep(0, min(samples, rule.in_flight)),), duration_ns=load.duration, count=samples
        )
    return _due(np.repeat(_server_queries(rule, way.rate or 1.0, load.seeds.arrivals), burst)[:most], load.duration)


def _server_queries(rule: MlperfRules, rate: float, seed: int) -> Stamps:
    """Return when queries are due: the first at 0, and the last when the least time has passed and enough have come."""
    gaps = Gaps("poisson")
    first_ns = int(arrivals.count_arrivals(gaps, rate, 1, seed=seed)[0])
    # Two ns more, so that no rounding puts the last one before its time.
    lasting = RateSegment((first_ns + rule.min_duration_ns + 2) / _S, rate, rate, gaps)
    queries = max(len(arrivals.time_arrivals([lasting], seed=seed)) + 1, rule.min_queries)
    arrivals.refuse_too_many(queries * rule.samples_per_query)
    return arrivals.count_arrivals(gaps, rate, queries, seed=seed) - first_ns
