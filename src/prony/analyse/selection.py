"""Select the repetitions that count, by cause and never by value."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from prony.errors import InputError
from prony.model.job import Job
from prony.model.recipe import Measure
from prony.model.result import Repetition, Result
from prony.stats.spread import FEWEST_RUNS


@dataclass(frozen=True)
class Selection:
    """`used` are the runs of the statistics, `cold` the cold starts; `contaminated` counts although it is not clean."""

    used: tuple[Repetition, ...]
    cold: tuple[Repetition, ...]
    excluded: dict[int, str]
    contaminated: tuple[Repetition, ...]


def check_result_of_job(job: Job, result: Result) -> None:
    """Refuse a result of another job.

    Raises:
        InputError: it is of another one.
    """
    if job.id != result.job_id:
        hint = "the files of a result folder belong together: fetch or import it again"
        raise InputError(f"the result is of job {result.job_id}, not of job {job.id}", hint=hint)


def select(
    repetitions: Iterable[Repetition],
    measure: Measure,
    *,
    measured: Collection[int],
    loaded: Collection[int],
    restless: Collection[int] = (),
) -> Selection:
    """Choose by cause, never by value: what failed, was disturbed or never settled stays out, however good it looks.

    These come back when too few clean ones remain. `measured` and `loaded` name the repetitions that have samples of
    these phases, `restless` those whose durations reached no steady state.
    """
    known = sorted(repetitions, key=lambda repetition: repetition.index)
    excluded = {repetition.index: _cause(repetition) for repetition in known if repetition.state != "ok"}
    good = [repetition for repetition in known if repetition.state == "ok"]
    runs = [repetition for repetition in good if repetition.kind == "measure" and repetition.index in measured]
    used = _clean_if_enough(runs, measure.repeats, lambda one: not one.contamination and one.index not in restless)
    cold = _clean_if_enough(
        [repetition for repetition in good if repetition.index in loaded],
        measure.cold_starts or measure.repeats,
        lambda one: not one.contamination,
    )
    for repetition in good:
        if repetition.kind == "measure" and repetition.index not in measured:
            excluded[repetition.index] = "has no measured sample"
        elif repetition not in (used if repetition.kind == "measure" else cold):
            excluded[repetition.index] = _disturbance(repetition, restless)
    dirty = tuple(repetition for repetition in used if repetition.contamination)
    return Selection(tuple(used), tuple(cold), dict(sorted(excluded.items())), dirty)


def _clean_if_enough(
    repetitions: list[Repetition], planned: int, is_clean: Callable[[Repetition], bool]
) -> list[Repetition]:
    """Return the clean ones where they are half of those planned, and as many as a comparison needs where it could have
    all: a job that loses its power to show a doubling would pass every gate."""
    clean = [repetition for repetition in repetitions if is_clean(repetition)]
    fewest = FEWEST_RUNS if min(planned, len(repetitions)) >= FEWEST_RUNS else 0
    return clean if len(clean) >= max(min(2, planned), math.ceil(planned / 2), fewest) else repetitions


def _disturbance(repetition: Repetition, restless: Collection[int]) -> str:
    if repetition.contamination:
        return f"disturbed: {'; '.join(repetition.contamination)}"
    return "reached no steady state" if repetition.index in restless else "has no sample"


def _cause(repetition: Repetition) -> str:
    if repetition.failure is None:
        return repetition.state
    phase = f" in {repetition.failure.phase}" if repetition.failure.phase else ""
    return f"{repetition.state}{phase}: {repetition.failure.message}"
