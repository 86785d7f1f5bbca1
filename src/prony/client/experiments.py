"""Experiments of a server: submit, list, change, stop and watch them, fetch what came out, and analyse it.

Results are analysed together, in comparisons, gates, sweeps over load and matrices of configurations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from prony.client.connection import ApiCall, ApiRequests, Asked, Content
from prony.client.resolve_id import exists, only_match
from prony.client.watching import Update, updates
from prony.errors import NotFoundError, PronyError
from prony.model.answer import NewScores, ScoredJobs
from prony.model.comparison import Comparison, Terms
from prony.model.experiment import ExperimentState
from prony.model.experiment_data import ExperimentData
from prony.model.gate import GateReport
from prony.model.listing import Filters, Glance, Listing, Sort
from prony.model.matrix import MatrixReport, MatrixTerms
from prony.model.quantity import share_text
from prony.model.queue import ExperimentView, Modification, Page, Submission
from prony.model.sweep import SweepReport
from prony.ports.use_cases import iterate_pages

_ALL = Filters()
# A server computes the numbers of a large experiment anew before it answers.
_LONGEST_IMPORT_S = 1800.0


class RemoteExperiments:
    """Experiments and their results. See `prony.ports.use_cases.ExperimentUseCases`."""

    def __init__(self, requests: ApiRequests) -> None:
        self._requests = requests
        self._connection = requests.connection

    def find(self, text: str) -> str:
        """Return the id of the experiment that a person means.

        Args:
            text: An id, the beginning of one, or `last`.

        Raises:
            NotFoundError: There is no such experiment.
            InputError: Several begin like that, with the code `ambiguous`.
        """
        if text == "last":
            newest = self.page(limit=1).items
            if not newest:
                raise NotFoundError("there is no experiment yet", hint="`prony run RECIPE --server URL` makes one")
            return newest[0].experiment.id
        if exists(self.get, text):
            return text
        ids = [view.experiment.id for view in iterate_pages(self.page)]
        return only_match([one for one in ids if text and one.startswith(text)], text, "experiment", "prony list")

    def submit(self, submission: Submission, *, key: str | None = None) -> ExperimentView:
        """Submit a recipe; with the same `key` again, the answer is the experiment that it made the first time."""
        return self._requests.create(ExperimentView, "experiments", body=submission, key=key)

    def page(
        self,
        *,
        state: ExperimentState | None = None,
        name: str | None = None,
        schedule: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[ExperimentView]:
        """Return the newest first, a page at a time."""
        return self._requests.get(
            Page[ExperimentView], "experiments", state=state, name=name, schedule=schedule, limit=limit, cursor=cursor
        )

    def search(
        self, filters: Filters = _ALL, *, sort: Sort = "newest", limit: int = 100, cursor: str | None = None
    ) -> Listing:
        """Search experiments: light rows, with a headline each."""
        asked = filters.model_dump(mode="json")
        return self._requests.get(Listing, "listing", **asked, sort=sort, limit=limit, cursor=cursor)

    def overview(self) -> Glance:
        """Return what to look at first."""
        return self._requests.get(Glance, "overview")

    def get(self, experiment_id: str) -> ExperimentView:
        """Return one experiment, with how its jobs stand."""
        return self._requests.get(ExperimentView, "experiments", experiment_id)

    def modify(self, experiment_id: str, modification: Modification) -> ExperimentView:
        """Change its priority or its labels."""
        return self._requests.send(ExperimentView, "PATCH", "experiments", experiment_id, body=modification)

    def delete(self, experiment_id: str, *, force: bool = False) -> None:
        """Delete an experiment and its results; one that is marked as running only by `force`."""
        self._requests.do("DELETE", "experiments", experiment_id, force=force)

    def cancel(self, experiment_id: str) -> ExperimentView:
        """Stop every job that has not ended; what was measured is kept."""
        return self._requests.send(ExperimentView, "POST", "experiments", experiment_id, "cancel")

    def retry(self, experiment_id: str) -> ExperimentView:
        """Have every failed, partial or cancelled job wait again."""
        return self._requests.send(ExperimentView, "POST", "experiments", experiment_id, "retry")

    def rerun(self, experiment_id: str, *, key: str | None = None) -> ExperimentView:
        """Submit the recipe of an earlier experiment again."""
        return self._requests.create(ExperimentView, "experiments", experiment_id, "rerun", key=key)

    def score(self, experiment_id: str, scores: NewScores) -> ScoredJobs:
        """Score the kept answers of an experiment again; scores of several jobs are sent job by job."""
        parts = [NewScores(jobs={job_id: told}) for job_id, told in scores.jobs.items()] or [scores]
        answered = [
            self._requests.send(ScoredJobs, "POST", "experiments", experiment_id, "score", body=part) for part in parts
        ]
        return ScoredJobs(jobs=tuple(job_id for one in answered for job_id in one.jobs))

    def watch(
        self, experiment_id: str, *, on_lost: Callable[[PronyError, float], None] = lambda *_: None
    ) -> Iterator[Update]:
        """Yield all that happens until the experiment has ended: first how everything stands, then what changes.

        A lost connection is made again for ever, and begins with how everything stands by then; `on_lost` is told why
        and after how many seconds it is tried.
        """
        return updates(self._connection, experiment_id, on_lost)

    def results(self, experiment_id: str, *, verify: bool = False) -> ExperimentData:
        """Return all numbers there are; the folders of its entries are on the server and have no path here.

        `verify` has the server look at every file of samples, and tell which results are damaged.
        """
        asked: dict[str, Asked] = {"verify": True} if verify else {}
        return self._requests.get(ExperimentData, "experiments", experiment_id, "results", **asked)

    def report(self, experiment_id: str, report_format: str = "html", *, strict: bool = False) -> bytes:
        """Return the report of an experiment as a document; `strict` fails gates that cannot be judged."""
        query: dict[str, Asked] = {"format": report_format, "strict": strict}
        call = ApiCall("GET", ("experiments", experiment_id, "report"), query, is_safe=True)
        return self._connection.send(call).content

    def keep_report(self, experiment_id: str, *, strict: bool = False) -> Path:
        """Write the HTML report into this machine's home: the server's own files may be out of reach."""
        from prony.client.transfer_experiment import keep_report

        return keep_report(experiment_id, self.report(experiment_id, "html", strict=strict))

    def download(self, experiment_id: str, to: Path, export_format: str = "folder") -> Path:
        """Write a tar of what `prony export` writes to the file `to`."""
        return self._requests.fetch(to, "experiments", experiment_id, "export", format=export_format)

    def import_results(self, sha256: str, content: Content) -> ExperimentView:
        """Send the tar of an export or a result folder, by its own SHA-256; the same again changes nothing."""
        headers = {"Content-Type": "application/x-tar"}
        call = ApiCall("PUT", ("imports", sha256), headers=headers, content=content, wait_s=_LONGEST_IMPORT_S)
        return self._connection.read(ExperimentView, call)

    def import_(self, path: Path) -> ExperimentView:
        """Send an export or a result folder; the server verifies its checksums and computes its numbers again."""
        from prony.client.transfer_experiment import send_folder

        return send_folder(self.import_results, path)

    def export(self, experiment_id: str, to: Path, *, overwrite: bool = False) -> Path:
        """Write an experiment with its results and checksums into the folder `to`, every checksum verified."""
        from prony.client.transfer_experiment import carry_export

        return carry_export(lambda tar: self.download(experiment_id, tar), to, overwrite=overwrite)

    def export_requests(self, experiment_id: str, export_format: str, to: Path) -> tuple[Path, ...]:
        """Write the requests of an experiment's loads into the folder `to`, in a format of other programs."""
        from prony.client.transfer_experiment import export_carried_requests

        return export_carried_requests(lambda tar: self.download(experiment_id, tar), export_format, to)


class RemoteAnalyses:
    """What analysis says of stored results. See `prony.ports.use_cases.AnalysisUseCases`."""

    def __init__(self, requests: ApiRequests, experiments: RemoteExperiments) -> None:
        self._requests = requests
        self._experiments = experiments

    def compare(self, names: Sequence[str], terms: Terms) -> Comparison:
        """Say how experiments or jobs stand against the first of them.

        Args:
            names: Experiments by their ids, the beginnings of them, or `last`; a job's id goes on with its number.
            terms: What decides, and the smallest change that matters.
        """
        return self.comparison([self._find_result(name) for name in names], terms)

    def _find_result(self, name: str) -> str:
        experiment, dash, number = name.rpartition("-")
        is_job = bool(dash) and number.isdigit()
        whole = self._experiments.find(experiment if is_job else name)
        return f"{whole}-{number}" if is_job else whole

    def comparison(self, of: Sequence[str], terms: Terms | None = None) -> Comparison:
        """Say how experiments or jobs, by their whole ids, stand against the first of them."""
        asked = terms or Terms()
        return self._requests.get(
            Comparison, "comparison", of=",".join(of), threshold=share_text(asked.threshold),
            metric=",".join(asked.metrics) or None, across=",".join(asked.across) or None,
            anyway=asked.anyway, rule=asked.rule,
        )  # fmt: skip

    def gates(self, experiment_id: str, *, strict: bool = False, more: Sequence[str] = ()) -> GateReport:
        """Judge the gates of an experiment's recipe, and `more` of them, written as in a recipe."""
        gate = "; ".join(more) or None
        return self._requests.get(GateReport, "experiments", experiment_id, "gates", strict=strict, gate=gate)

    def sweep(self, ids: Sequence[str], *, slo: Sequence[str] = ()) -> SweepReport:
        """Say what several loads show together; limits are written as `ttft_ms.p99=200`."""
        return self._requests.get(SweepReport, "sweep", ids=",".join(ids), slo=",".join(slo) or None)

    def matrix(self, ids: Sequence[str], terms: MatrixTerms) -> MatrixReport:
        """Compare the jobs of several experiments in rows and columns."""
        return self._requests.get(MatrixReport, "matrix", ids=",".join(ids), **terms.model_dump(mode="json"))
