"""Run a recipe that need not be kept, and say which of its jobs is the fastest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prony.app.compare_sides import compare_sides
from prony.errors import InputError
from prony.report.winner import describe_winner

if TYPE_CHECKING:
    from prony.app.bench import Bench
    from prony.model.comparison import Comparison
    from prony.model.experiment import Experiment
    from prony.model.experiment_data import ExperimentData
    from prony.model.job import Job

BeginRun = Callable[["Experiment", "Sequence[Job]"], None]


@contextmanager
def delete_afterwards(bench: Bench, *, is_wanted: bool) -> Iterator[Callable[[BeginRun], BeginRun]]:
    """Give what notes the experiments that begin; where it `is_wanted`, they are deleted when the block ends.

    What is given takes whatever else shall be called at the beginning: `note(follower.start)`.
    """
    started: list[str] = []

    def note(begin: BeginRun) -> BeginRun:
        def begin_and_note(experiment: Experiment, jobs: Sequence[Job]) -> None:
            started.append(experiment.id)
            begin(experiment, jobs)

        return begin_and_note

    try:
        yield note
    finally:
        if is_wanted:
            for experiment_id in started:
                bench.experiments.delete(experiment_id, force=True)


def name_winners(bench: Bench, data: ExperimentData) -> tuple[list[Comparison], list[str]]:
    """Return how the jobs of an experiment stand to each other, and a sentence on each comparison."""
    try:
        found = compare_sides(bench.analyses, data)
    except InputError as exc:
        return [], [f"No winner is named: {exc.message}"]
    return found, [describe_winner(one) for one in found]
