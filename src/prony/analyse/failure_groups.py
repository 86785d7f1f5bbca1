"""Group failures of many jobs by their cause."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from prony.model.failures import FailureGroup, FailureReport, JobFailure

# What differs between failures of one cause: paths and addresses, long names of hexadecimal digits, numbers.
_VARYING = re.compile(r"(?:[a-z]+:/)?/[^\s'\"]+|\b(?=\w*\d)[0-9a-f]{8,}\b|\d+(?:\.\d+)?", re.IGNORECASE)


def report_failures(failures: Sequence[JobFailure], *, since: datetime, is_cut: bool = False) -> FailureReport:
    """Return the causes, those with most failures first, and of equals the newer one."""
    causes: dict[tuple[str, str], list[JobFailure]] = defaultdict(list)
    for one in failures:
        causes[one.code, wording_of(one)].append(one)
    groups = sorted((_group(found) for found in causes.values()), key=lambda group: (group.failures, group.last_at))
    return FailureReport(
        since=since,
        failures=len(failures),
        jobs=len({one.job_id for one in failures}),
        agents=len({one.agent for one in failures}),
        groups=tuple(reversed(groups)),
        is_cut=is_cut,
    )


def wording_of(failure: JobFailure) -> str:
    """Return a message without what differs from job to job."""
    text = failure.message.replace(failure.job_id, "JOB").replace(failure.experiment_id, "EXPERIMENT")
    return _VARYING.sub("…", text)


def _group(failures: Sequence[JobFailure]) -> FailureGroup:
    newest = max(failures, key=lambda one: (one.at, one.job_id))
    return FailureGroup(
        code=newest.code,
        whose=newest.whose,
        message=newest.message,
        hint=newest.hint,
        failures=len(failures),
        jobs=len({one.job_id for one in failures}),
        agents=_count(one.agent for one in failures),
        recipes=_count(one.recipe for one in failures),
        days=dict(sorted(Counter(one.at.astimezone(UTC).date().isoformat() for one in failures).items())),
        first_at=min(one.at for one in failures),
        last_at=newest.at,
        newest_job=newest.job_id,
        newest_experiment=newest.experiment_id,
    )


def _count(names: Iterable[str]) -> dict[str, int]:
    """Return how often each comes, the most frequent first."""
    return dict(sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0])))
