"""Run a recipe that need not be kept, and say which of its jobs is the fastest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prony.errors import InputError
from prony.model.comparison import Comparison, Terms
from prony.model.estimate import headline_of, metric_in
from prony.report.winner import describe_winner

if TYPE_CHECKING:
    from prony.app.bench import Bench
    from prony.app.local_experiments import LocalAnalyses
    from prony.model.experiment import Experiment
    from prony.model.experiment_data import Entry, ExperimentData
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


# What somebody puts side by side to see which is fastest; the first that varies is the question.
_QUESTIONS = ("workload.engine", "workload.command", "workload.model")


def compare_sides(analyses: LocalAnalyses, data: ExperimentData) -> list[Comparison]:
    """Return a comparison for each group of jobs that differ in engine, command or model alone.

    Of a duet both sides are compared; else the job with the best headline number is the baseline.

    Raises:
        InputError: The jobs of a group are not comparable.
    """
    if data.experiment.recipe.duet is not None:
        return [analyses.compare([data.experiment.id], Terms())]
    paths = {path for entry in data.entries for path in entry.job.cell}
    question = next((path for path in _QUESTIONS if path in paths), None)
    if question is None:
        return []
    groups: dict[str, list[Entry]] = {}
    for entry in data.entries:
        rest = sorted((path, str(value)) for path, value in entry.job.cell.items() if path != question)
        groups.setdefault(str(rest), []).append(entry)
    # What an engine says of itself differs with the engine.
    terms = Terms(across=(question, "effective") if _says(data) else (question,))
    ranked = [ordered for group in groups.values() if len(ordered := _fastest_first(group)) > 1]
    return [analyses.compare([entry.job.id for entry in ordered], terms) for ordered in ranked]


def _says(data: ExperimentData) -> bool:
    return any(entry.result.effective is not None for entry in data.entries)


def _fastest_first(entries: Sequence[Entry]) -> list[Entry]:
    """Return those that have a headline number, the best first."""
    keys = [headline_of(one.summary, one.job.workload.kind) or "" for one in entries]
    timed = [
        (_cost(one, key), place)
        for place, (one, key) in enumerate(zip(entries, keys, strict=True))
        if key in one.summary.estimates
    ]
    return [entries[place] for _, place in sorted(timed)]


def _cost(entry: Entry, key: str) -> float:
    """Return a number that is lower for the better job."""
    value = entry.summary.estimates[key].value
    return -value if metric_in(entry.summary, key).better == "higher" else value
