"""Compare the jobs of experiments in a matrix."""

from __future__ import annotations

from collections.abc import Sequence

from prony.app.experiment_data import gather_results
from prony.app.results import with_runs
from prony.model.matrix import MatrixReport, MatrixTerms
from prony.store.store import Store


def matrix_over(store: Store, experiment_ids: Sequence[str], terms: MatrixTerms) -> MatrixReport:
    """Compare every job that has a result; the price of each is its own recipe's, or its machine's."""
    from prony.analyse.matrix import Priced, matrix_report

    dossiers = [gather_results(store, one) for one in dict.fromkeys(experiment_ids)]
    jobs = [Priced(with_runs(entry), one.experiment.recipe.cost) for one in dossiers for entry in one.entries]
    return matrix_report(jobs, terms)
