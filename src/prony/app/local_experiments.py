"""Experiments of this machine's home, and what analysis says of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prony.app import experiment_data
from prony.errors import ConflictError
from prony.model.answer import NewScores, ScoredJobs
from prony.model.comparison import Comparison, Terms
from prony.model.experiment import Experiment, ExperimentState
from prony.model.experiment_data import ExperimentData
from prony.model.gate import GateReport
from prony.model.matrix import MatrixReport, MatrixTerms
from prony.model.sweep import SweepReport
from prony.store.store import Store

if TYPE_CHECKING:
    from prony.model.experiment_data import AnalysedExperiment


REPORT = "report.html"


class LocalExperiments:
    """Experiments that ran here, or were brought here. See `prony.ports.use_cases.ExperimentUseCases`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, text: str) -> str:
        """Return the id of the experiment that a person means by an id, the beginning of one, or `last`."""
        return self._store.resolve_id(text)

    def results(self, experiment_id: str, *, verify: bool = False) -> ExperimentData:
        """Return all numbers of an experiment; `verify` tells which of its results are damaged."""
        return experiment_data.read_experiment_data(self._store, experiment_id, verify=verify)

    def report(self, experiment_id: str, report_format: str = "html", *, strict: bool = False) -> bytes:
        """Return the report of an experiment as a document; `strict` fails gates that cannot be judged."""
        return self._render(self.results(experiment_id), report_format, strict=strict)

    def keep_report(self, experiment_id: str, *, strict: bool = False) -> Path:
        """Write the HTML report beside the results and return its path."""
        return self.write_report(self.results(experiment_id), strict=strict)

    def write_report(self, data: ExperimentData, *, strict: bool = False) -> Path:
        """Write the HTML report of results that were read already, as `keep_report` does."""
        path = self._store.home.experiment_folder(data.experiment.id) / REPORT
        path.write_bytes(self._render(data, "html", strict=strict))
        return path

    def _render(self, data: ExperimentData, report_format: str, *, strict: bool) -> bytes:
        from prony.report import render

        if report_format == "html":
            from prony.report.plots.figure import check_drawing

            check_drawing()  # said before anything is analysed
        content = render(self.analyse(data), report_format, strict=strict)
        return content if isinstance(content, bytes) else content.encode()

    def analyse(self, data: ExperimentData) -> AnalysedExperiment:
        """Return results with all that analysis says of them; new results are judged first."""
        from prony.app.analyses import analyse_experiment
        from prony.app.local_histories import LocalHistories

        LocalHistories(self._store).judge()
        return analyse_experiment(self._store, data)

    def delete(self, experiment_id: str, *, force: bool = False) -> None:
        """Delete an experiment and its results; one that is marked as running only by `force`."""
        self._store.delete_experiment(experiment_id, force=force)

    def export(self, experiment_id: str, to: Path, *, overwrite: bool = False) -> Path:
        """Write an experiment with its recipe, results and checksums into the folder `to`.

        Raises:
            ConflictError: The experiment is running.
        """
        from prony.store import transfer

        if self._store.experiment(experiment_id).state is ExperimentState.RUNNING:
            raise ConflictError(f"experiment {experiment_id} is running", hint="wait for it, or stop it")
        transfer.export(self._store, experiment_id, to, overwrite=overwrite)
        return to

    def score(self, experiment_id: str, scores: NewScores) -> ScoredJobs:
        """Score the kept answers of an experiment again, without asking any model."""
        from prony.app.score_again import score_folders

        folders = {record.job_id: record.folder for record in self._store.records(experiment_id)}
        summaries = score_folders(experiment_id, folders, scores)
        self._store.replace_summaries(summaries)
        return ScoredJobs(jobs=tuple(summaries))

    def export_requests(self, experiment_id: str, export_format: str, to: Path) -> tuple[Path, ...]:
        """Write the requests of an experiment's loads into the folder `to`, in a format of other programs."""
        from prony.app.interchange import export_loads

        return export_loads(self.results(experiment_id), export_format, to)

    def import_(self, path: Path) -> Experiment:
        """Bring in an export; its checksums are verified and its numbers computed again."""
        from prony.app.interchange import import_folder

        return import_folder(self._store, path)


class LocalAnalyses:
    """What analysis says of several results of this home. See `prony.ports.use_cases.AnalysisUseCases`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def compare(self, names: Sequence[str], terms: Terms) -> Comparison:
        """Say how later experiments or jobs stand against the first; the answer names them as they are named here."""
        from prony.app.analyses import compare_stored

        return compare_stored(self._store, names, terms)

    def gates(self, experiment_id: str, *, strict: bool = False, more: Sequence[str] = ()) -> GateReport:
        """Judge the gates of an experiment's recipe, and `more` of them, written as in a recipe."""
        from prony.app.gates import gate_report

        data = experiment_data.read_experiment_data(self._store, experiment_id)
        return gate_report(self._store, data, strict=strict, more=more)

    def sweep(self, ids: Sequence[str], *, slo: Sequence[str] = ()) -> SweepReport:
        """Say what several loads show together; limits are written as `ttft_ms.p99=200`."""
        from prony.app.sweeps import slo_of, sweep_over

        limits = slo_of(slo)
        return sweep_over(experiment_data.entries_of(self._store, ids), limits)

    def matrix(self, ids: Sequence[str], terms: MatrixTerms) -> MatrixReport:
        """Compare the jobs of several experiments in rows and columns."""
        from prony.app.analyses import matrix_over

        return matrix_over(self._store, ids, terms)
