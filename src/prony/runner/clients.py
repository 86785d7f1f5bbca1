"""Describe the client side of a load, to show whether the clients themselves were slow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from prony.model.clients import ClientSide, Member
from prony.ports.driver import Cause

if TYPE_CHECKING:
    from prony.load.outcome import LoadOutcome
    from prony.load.schedule import LoadSchedule

Array = np.ndarray[Any, np.dtype[np.int64]]


class ClientRun(Protocol):
    """The requests of a run, and from when until when they were sent."""

    @property
    def records(self) -> Mapping[str, Array]: ...
    @property
    def begin_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...


_MS = 1e6
_S = 1e9


def client_side(outcome: LoadOutcome, schedule: LoadSchedule) -> ClientSide:
    """Return how a run went on the side of those who sent."""
    records = outcome.records
    wall_s = (outcome.end_ns - outcome.begin_ns) / _S
    sent = _really_sent(records)
    late_ms = (records["sent_ns"][sent] - records["due_ns"][sent]) / _MS
    lags_ms = records["lag_ns"][records["lag_ns"] > 0] / _MS
    is_open = schedule.dues_ns is not None
    return ClientSide(
        asked_rate_per_s=_asked_rate(schedule) if is_open else None,
        delivered_rate_per_s=_sent_in_time(outcome) / wall_s if is_open and wall_s > 0 else None,
        asked_concurrency=None if is_open else round(_asked_users(schedule, outcome.end_ns - outcome.begin_ns)),
        delivered_concurrency=None if is_open else _in_flight(outcome, schedule),
        sent_late_p50_ms=_quantile(late_ms, 0.5) if is_open else None,
        sent_late_p99_ms=_quantile(late_ms, 0.99) if is_open else None,
        sent_late_max_ms=float(late_ms.max()) if is_open and late_ms.size else None,
        loop_lag_p50_ms=_worst([one.loop_lag_p50_ns for one in outcome.clients]),
        loop_lag_p99_ms=_worst([one.loop_lag_p99_ns for one in outcome.clients]),
        kernel_lag_p50_ms=_quantile(lags_ms, 0.5),
        kernel_lag_p99_ms=_quantile(lags_ms, 0.99),
        cpu_shares=tuple(one.cpu_s / one.wall_s if one.wall_s > 0 else 0.0 for one in outcome.clients),
        is_real_time=bool(outcome.clients) and all(one.is_real_time for one in outcome.clients),
        connections_asked=sum(one.connections_asked for one in outcome.clients),
        connections_opened=sum(one.connections_opened for one in outcome.clients),
        asked_again=sum(one.asked_again for one in outcome.clients),
        causes=failure_causes(records),
    )


def merged_side(members: Sequence[Member], sides: Sequence[ClientSide], run: ClientRun) -> ClientSide:
    """Return how a run went on the side of several agents: counts are added up, quantiles made of all requests."""
    records, wall_s = run.records, (run.end_ns - run.begin_ns) / _S
    sent = _really_sent(records)
    late_ms = (records["sent_ns"][sent] - records["due_ns"][sent]) / _MS
    lags_ms = records["lag_ns"][records["lag_ns"] > 0] / _MS
    first = sides[0]
    is_open = first.asked_rate_per_s is not None
    counts: Counter[str] = Counter()
    for side in sides:
        counts.update(side.causes)
    return ClientSide(
        asked_rate_per_s=first.asked_rate_per_s,
        delivered_rate_per_s=_sent_in_time(run) / wall_s if is_open and wall_s > 0 else None,
        asked_concurrency=first.asked_concurrency,
        delivered_concurrency=None if first.delivered_concurrency is None else _mean_in_flight(run),
        sent_late_p50_ms=_quantile(late_ms, 0.5) if is_open else None,
        sent_late_p99_ms=_quantile(late_ms, 0.99) if is_open else None,
        sent_late_max_ms=float(late_ms.max()) if is_open and late_ms.size else None,
        loop_lag_p50_ms=max((side.loop_lag_p50_ms for side in sides if side.loop_lag_p50_ms is not None), default=None),
        loop_lag_p99_ms=max((side.loop_lag_p99_ms for side in sides if side.loop_lag_p99_ms is not None), default=None),
        kernel_lag_p50_ms=_quantile(lags_ms, 0.5),
        kernel_lag_p99_ms=_quantile(lags_ms, 0.99),
        cpu_shares=tuple(share for side in sides for share in side.cpu_shares),
        connections_asked=sum(side.connections_asked or 0 for side in sides),
        connections_opened=sum(side.connections_opened or 0 for side in sides),
        asked_again=sum(side.asked_again for side in sides),
        is_real_time=all(side.is_real_time for side in sides),
        causes=dict(counts),
        members=tuple(members),
    )


def failure_causes(records: Mapping[str, Array]) -> dict[str, int]:
    """Return how many requests ended how; those that nobody had are left out."""
    values, counts = np.unique(records["cause"], return_counts=True)
    return {Cause(int(value)).name.lower(): int(count) for value, count in zip(values, counts, strict=True)}


def _asked_rate(schedule: LoadSchedule) -> float | None:
    if schedule.dues_ns is None or not schedule.dues_ns.size:
        return None
    until_ns = schedule.duration_ns or int(schedule.dues_ns[-1]) or 1
    return schedule.dues_ns.size / (until_ns / _S)


def _sent_in_time(outcome: ClientRun) -> int:
    sent = outcome.records["sent_ns"]
    return int(np.count_nonzero(_really_sent(outcome.records) & (sent <= outcome.end_ns)))


def _really_sent(records: Mapping[str, Array]) -> Any:
    """Return which requests left: what was dropped or found no connection did not."""
    never = np.isin(records["cause"], (Cause.REFUSED, Cause.DROPPED))
    return (records["sent_ns"] > 0) & ~never


def _asked_users(schedule: LoadSchedule, duration_ns: int) -> float:
    """Return how many users there should have been on average."""
    if not schedule.steps:
        return 0.0
    begins = [min(step.at_ns, duration_ns) for step in schedule.steps]
    lasting = np.diff([*begins, duration_ns])
    users = np.array([step.users for step in schedule.steps], dtype=np.float64) * schedule.burst
    return float(np.dot(lasting, users) / lasting.sum()) if lasting.sum() > 0 else float(users[-1])


def _in_flight(outcome: LoadOutcome, schedule: LoadSchedule) -> float | None:
    """Return how many requests were in flight on average; users who think are in none."""
    return None if schedule.think_ns else _mean_in_flight(outcome)


def _mean_in_flight(outcome: ClientRun) -> float | None:
    """Return the mean while requests were sent, each in flight until its client had the reply."""
    if outcome.end_ns <= outcome.begin_ns:
        return None
    records = outcome.records
    sent = _really_sent(records)
    begins = np.clip(records["sent_ns"][sent], outcome.begin_ns, outcome.end_ns)
    ends = np.clip((records["end_ns"] + records["lag_ns"])[sent], outcome.begin_ns, outcome.end_ns)
    return float(np.sum(ends - begins) / (outcome.end_ns - outcome.begin_ns))


def _quantile(values: Any, share: float) -> float | None:
    return float(np.quantile(values, share)) if values.size else None


def _worst(values_ns: list[int | None]) -> float | None:
    known = [value for value in values_ns if value is not None]
    return max(known) / _MS if known else None
