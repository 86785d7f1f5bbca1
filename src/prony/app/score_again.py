"""Score the kept answers of an experiment again, without asking any model."""

from __future__ import annotations

from prony.app.results import summary_of
from prony.errors import InputError
from prony.instruments.kept_answers import OUTPUTS, read_answers, write_scores
from prony.runner.scorer import ScorerOrder, run_scorer
from prony.store.store import Store


def score_experiment(store: Store, experiment_id: str, scorer: ScorerOrder | None = None) -> int:
    """Compute every score anew, with a scorer of the user's own where one is named; return how many jobs have any."""
    folders = {record.job_id: record.folder for record in store.records(experiment_id)}
    kept = {job_id: folder for job_id, folder in folders.items() if (folder / OUTPUTS).is_file()}
    if not kept:
        hint = "tasks that are scored store answers: summarize, qa, classify"
        raise InputError(f"experiment {experiment_id} has no stored answers", hint=hint, code="no_answers")
    for job_id, folder in kept.items():
        if scorer is not None:
            answers = [one for one in read_answers(folder) if one.is_whole]
            write_scores(folder, answers, run_scorer(scorer, answers))
        store.replace_summary(job_id, summary_of(folder))
    return len(kept)
