"""Score the kept answers of an experiment again, without asking any model."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from prony.app.results import summary_of
from prony.errors import InputError, NotFoundError
from prony.instruments.kept_answers import OUTPUTS, WholeAnswer, pair_scores, read_answers, write_scores
from prony.model.answer import ItemScores, NewScores
from prony.model.estimate import Summary
from prony.ports.use_cases import UseCases
from prony.runner.scorer import ScorerOrder, run_scorer


def score_folders(experiment_id: str, folders: Mapping[str, Path], new: NewScores) -> dict[str, Summary]:
    """Return by job a new summary of each folder that keeps answers, after `new` scores are written into it.

    Raises:
        InputError: No folder keeps answers, or scores are of an answer that none keeps.
    """
    kept = {job_id: folder for job_id, folder in folders.items() if (folder / OUTPUTS).is_file()}
    if not kept:
        hint = "tasks that are scored store answers: summarize, qa, classify, perplexity"
        raise InputError(f"experiment {experiment_id} has no stored answers", hint=hint, code="no_answers")
    for job_id, scores in new.jobs.items():
        if job_id not in kept:
            raise InputError(f"job {job_id} has no stored answers", hint="name jobs of this experiment")
        _check_places(job_id, kept[job_id], scores)
    for job_id, scores in new.jobs.items():
        write_scores(kept[job_id], scores)
    return {job_id: summary_of(folder) for job_id, folder in kept.items() if not new.jobs or job_id in new.jobs}


def _check_places(job_id: str, folder: Path, scores: Sequence[ItemScores]) -> None:
    known = {(one.repetition, one.round, one.item) for one in read_answers(folder)}
    for one in scores:
        if (one.repetition, one.round, one.item) not in known:
            raise InputError(
                f"job {job_id} has no answer to {one.item!r} in run {one.repetition}, round {one.round}",
                hint="score the answers in its outputs.jsonl",
            )


def score_by_command(bench: UseCases, experiment_id: str, order: ScorerOrder) -> NewScores:
    """Let a scorer look at the answers of every job that keeps some, on this machine; nothing is stored.

    Raises:
        SutError: It failed, or took too long.
    """
    found = {}
    for entry in bench.experiments.results(experiment_id).entries:
        answers = [one for one in _fetch_answers(bench, entry.job.id) if one.is_whole]
        if answers:
            found[entry.job.id] = pair_scores(answers, run_scorer(order, answers))
    return NewScores(jobs=found)


def _fetch_answers(bench: UseCases, job_id: str) -> list[WholeAnswer]:
    with tempfile.TemporaryDirectory(prefix="prony-answers-") as folder:
        try:
            bench.files.fetch(job_id, OUTPUTS, Path(folder) / OUTPUTS)
        except NotFoundError:
            return []
        return read_answers(Path(folder))
