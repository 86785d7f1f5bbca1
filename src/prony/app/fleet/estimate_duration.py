"""Jobs that are not submitted yet in, how long they will take out: by what the same took before, or by their loads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from sqlalchemy import Connection, select

from prony.model.check import Expected
from prony.model.job import Job
from prony.model.queue import JobState
from prony.ports.workload import kind_of
from prony.store import history_tables, tables
from prony.store.series_points import fingerprint

# Kinds of machine: hardware and operating system.
Machine = tuple[str, str]
# A recipe of more jobs is estimated by none: to look for all of them would take longer than anybody waits.
_MOST_JOBS = 2000
_AT_ONCE = 500
_MOST_LOOKED_AT = 5000


def estimate_duration(
    connection: Connection, jobs: Sequence[Job], machines: Iterable[Machine], *, shared: int
) -> Expected:
    """Return how long the jobs take where `shared` devices work on them at the same time."""
    if not jobs or len(jobs) > _MOST_JOBS:
        return Expected(basis="too many jobs to look for what they took before")
    series = {job.id: [fingerprint(job, *machine) for machine in dict.fromkeys(machines)] for job in jobs}
    took = _took(connection, sorted({one for ids in series.values() for one in ids}))
    earlier = {job.id: median(known) for job in jobs if (known := _past_durations(series[job.id], took))}
    seconds = [earlier.get(job.id, kind_of(job.workload).prepare.expected_seconds(job)) for job in jobs]
    unknown = sum(one is None for one in seconds)
    if unknown == len(jobs):
        return Expected(basis="nothing like it was measured on these machines before")
    if unknown:
        return Expected(basis=f"only of {len(jobs) - unknown} of {len(jobs)} jobs is known how long they take")
    total = sum(one for one in seconds if one is not None) / max(1, min(shared, len(jobs)))
    return Expected(seconds=total, basis=_basis(len(earlier), len(jobs)))


def _basis(earlier: int, jobs: int) -> str:
    if earlier == jobs:
        return "what the same jobs took on these machines before"
    told = "how long the loads are told to last, without starting what is loaded"
    return told if not earlier else f"what {earlier} of the jobs took before, and {told}"


def _past_durations(series: Iterable[str], took: Mapping[str, Sequence[float]]) -> list[float]:
    return [median(took[one]) for one in series if one in took]


def _took(connection: Connection, series: Sequence[str]) -> dict[str, list[float]]:
    """Return by series how long its jobs took from lease to result, the newest of them."""
    point, queue = history_tables.point, tables.queue
    found: dict[str, list[float]] = defaultdict(list)
    for begin in range(0, len(series), _AT_ONCE):
        query = (
            select(point.c.series_id, queue.c.leased_at, queue.c.ended_at)
            .join(queue, queue.c.job_id == point.c.job_id)
            .where(point.c.series_id.in_(series[begin : begin + _AT_ONCE]), queue.c.state == JobState.COMPLETE.value)
            .order_by(point.c.measured_at.desc())
            .limit(_MOST_LOOKED_AT)
        )
        for series_id, leased_at, ended_at in connection.execute(query):
            if leased_at is not None and ended_at is not None:
                found[series_id].append((ended_at - leased_at).total_seconds())
    return found
