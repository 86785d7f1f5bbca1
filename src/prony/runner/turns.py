"""Decide which repetition a job needs next, and the order in which jobs take turns."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from prony.model.recipe import Measure
from prony.model.result import FOREIGN_CPU_VOIDS, Repetition
from prony.runner.folder import ResultFolder
from prony.stats.spread import FEWEST_RUNS
from prony.stats.stopping import tight_enough

T = TypeVar("T")
Op = Literal["measure", "load"]
_GIVE_UP_AFTER = 2  # failures in a row, from the first repetition on: the rest would say the same
_LEAST_FOR_INTERVAL = 6  # runs below which no 95 % interval of a median exists
# So many runs in a row that others disturbed heavily are enough to give up, once they took so long.
_FEWEST_DISTURBED, _PATIENCE_NS = 3, 60 * 10**9


def next_step(measure: Measure, done: Sequence[Repetition], run_medians: Sequence[float]) -> Op | None:
    """Return which kind of repetition comes next; `run_medians` holds one number for each clean run."""
    if _hopeless(done):
        return None
    if _wants_run(measure, done, run_medians):
        return "measure"
    loads = sum(1 for repetition in done if repetition.state == "ok")
    tried = sum(1 for repetition in done if repetition.kind == "load")
    wanted = measure.cold_starts or 0
    return "load" if loads < wanted and tried < wanted else None


def count_repetitions(measure: Measure) -> int:
    """Return how many repetitions a job will take if nothing disturbs it."""
    return max(_fewest(measure), measure.cold_starts or 0)


def _wants_run(measure: Measure, done: Sequence[Repetition], run_medians: Sequence[float]) -> bool:
    tried = [repetition for repetition in done if repetition.kind == "measure"]
    clean = [repetition for repetition in tried if repetition.is_clean]
    failed = sum(1 for repetition in tried if repetition.state != "ok")
    if is_never_quiet(_fewest(measure), tried):
        return False
    if measure.until is None:
        # What is not clean is repeated, but a machine that is never quiet must not keep us for ever.
        return len(clean) + failed < measure.repeats and len(tried) < 2 * measure.repeats
    if len(tried) >= 2 * measure.until.max_repeats or len(clean) + failed >= measure.until.max_repeats:
        return False
    return len(clean) < _fewest(measure) or not tight_enough(run_medians, measure.until.ci)


def is_never_quiet(planned: int, tried: Sequence[Repetition]) -> bool:
    """Is no undisturbed run in sight? Each of the latest ones was disturbed: as many as are planned (three at least),
    or three so heavily that the result is void, where all of them together took a minute."""
    enough = max(planned, _FEWEST_DISTURBED)
    latest = tried[-enough:]
    if len(latest) == enough and all(one.contamination for one in latest):
        return True
    heavily = all((one.noise.foreign_cpu or 0.0) > FOREIGN_CPU_VOIDS and one.contamination for one in tried)
    return heavily and len(tried) >= _FEWEST_DISTURBED and sum(map(_duration_ns, tried)) >= _PATIENCE_NS


def _duration_ns(one: Repetition) -> int:
    phases = one.phases.values()
    return max((phase.end_ns for phase in phases), default=0) - min((phase.begin_ns for phase in phases), default=0)


def wants_replacement(planned: int, tried: Sequence[Repetition]) -> bool:
    """Is one more run to be made in place of a disturbed one, after all planned ones?

    Only where a comparison could be decided by as many, and where the machine is quiet at times: half as many again at
    most. Whatever failed counts as a run, for it would fail again.
    """
    clean = sum(one.is_clean for one in tried)
    failed = sum(one.state != "ok" for one in tried)
    return planned >= FEWEST_RUNS and 0 < clean < planned - failed and len(tried) < planned + planned // 2


def _fewest(measure: Measure) -> int:
    """Return how many clean runs there must be before anything else is asked."""
    return max(measure.repeats, _LEAST_FOR_INTERVAL) if measure.until else measure.repeats


def _hopeless(done: Sequence[Repetition]) -> bool:
    failures = [repetition.failure for repetition in done]
    if any(failure is not None and failure.whose in ("input", "capacity") for failure in failures):
        return True
    return len(done) >= _GIVE_UP_AFTER and all(repetition.state == "failed" for repetition in done)


def why_made_again(repetition: Repetition) -> str:
    """Return what is wrong with a repetition in a few words; empty where it is clean."""
    if repetition.failure is not None:
        return f"{repetition.state}: {repetition.failure.message}"
    if repetition.refused:
        return f"ignored: {repetition.refused[0].name} {repetition.refused[0].reason}"
    causes = repetition.client.causes if repetition.client is not None else {}
    if bad := ", ".join(f"{count:,} {name}" for name, count in causes.items() if name != "ok"):
        return f"some failed: {bad}"
    if repetition.contamination:
        return f"disturbed: {repetition.contamination[0].partition(': ')[2]}"
    return "not steady" if repetition.steady is False else ""


def run_in_turns(
    folders: Sequence[ResultFolder], prepare: Callable[[ResultFolder], T | None], again: Callable[[T], bool],
    finish: Callable[[T], None], stop_asked: Callable[[], bool],
) -> None:  # fmt: skip
    """Prepare every job, let those that are ready take turns, and finish them; one that `prepare` refused is left."""
    ready = [one for folder in folders if (one := prepare(folder)) is not None]
    take_turns(ready, again, seed=folders[0].job.seed, stop_asked=stop_asked)
    for one in ready:
        finish(one)


def take_turns(jobs: Sequence[T], again: Callable[[T], bool], *, seed: int, stop_asked: Callable[[], bool]) -> None:
    """Give each job one repetition a round, so that what happens to the machine happens to all alike.

    `again` makes a repetition where one is wanted, and returns whether another may be.
    """
    pending, round_number = list(jobs), 0
    while pending:
        for job in shuffle_round(pending, round_number=round_number, seed=seed):
            if stop_asked():
                return
            if not again(job):
                pending = [one for one in pending if one is not job]
        round_number += 1


def shuffle_round(jobs: Sequence[T], *, round_number: int, seed: int) -> list[T]:
    """Return the jobs of one round in an order by chance, and in every second round in the last one's reversed.

    A steady drift of the machine then falls on all of them alike, and anything else spreads over them.
    """
    rng = random.Random(f"{seed}/{round_number // 2}")
    order = rng.sample(list(jobs), k=len(jobs))
    return order[::-1] if round_number % 2 else order
