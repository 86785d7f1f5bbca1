"""Find the result that a branch's history is held against."""

from __future__ import annotations

from collections.abc import Sequence

from prony.model.estimate import Grade
from prony.model.history import ForkResult, Point
from prony.store import series as rows
from prony.store.database import Connection


def find_fork(connection: Connection, points: Sequence[Point], metric: str) -> ForkResult | None:
    """Return the result of the base that the newest of these points is held against; None on the default branch, and
    where the base has no result that may be quoted."""
    from prony.analyse.references import rank_fork_results

    newest = points[-1] if points else None
    if newest is None or newest.git is None or newest.git.base is None or newest.base_series_id is None:
        return None
    usable = [point for point in rows.points(connection, newest.base_series_id) if point.grade is not Grade.VOID]
    ranked = rank_fork_results(newest.git, usable, lambda point: point.git)
    if not ranked.items:
        return None
    found = ranked.items[0]
    before, now = found.values.get(metric), newest.values.get(metric)
    return ForkResult(
        base=newest.git.base, commit=None if found.git is None else found.git.commit, is_known=not ranked.note,
        note=ranked.note, series_id=found.series_id, job_id=found.job_id, experiment_id=found.experiment_id,
        measured_at=found.measured_at, value=before, against=now / before - 1 if before and now is not None else None,
    )  # fmt: skip
