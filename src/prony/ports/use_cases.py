"""The use cases that this machine's own bench and a server have alike, one Protocol for each noun.

`prony.app.bench.Bench` answers from the home of this machine, `prony.client.Client` asks a server. The commands open
one of them and need not know which. Ids are whole; `find` makes one of what a person writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from prony.model.alarm import Alarm, Delivery, Incident, MadeAlarm, NewAlarm, TestAnswer
    from prony.model.answer import NewScores, ScoredJobs
    from prony.model.comparison import Comparison, Terms
    from prony.model.experiment_data import ExperimentData
    from prony.model.gate import GateReport
    from prony.model.history import Acknowledgement, Baseline, Change, History, NewBaseline, Series
    from prony.model.log import LogPiece
    from prony.model.matrix import MatrixReport, MatrixTerms
    from prony.model.queue import Page
    from prony.model.result_files import ResultFiles
    from prony.model.schedule import Fire, NewSchedule, Schedule
    from prony.model.sweep import SweepReport

T = TypeVar("T")

LARGEST_PAGE = 500


class Pages(Protocol[T]):
    """Returns one page of a list: at most `limit` things, from where the page with this `next` ended."""

    def __call__(self, *, limit: int, cursor: str | None) -> Page[T]:
        """Return a page; its `next` is the cursor of the following one, None on the last."""


def iterate_pages(ask: Pages[T], limit: int | None = None) -> Iterator[T]:
    """Yield the first things of a list, page after page.

    Args:
        ask: Returns one page, as `bench.schedules.page` does.
        limit: How many things at most; None for all of them.
    """
    left, cursor = limit, None
    while left is None or left > 0:
        page = ask(limit=LARGEST_PAGE if left is None else min(left, LARGEST_PAGE), cursor=cursor)
        yield from page.items
        if page.next is None:
            return
        cursor = page.next
        left = None if left is None else left - len(page.items)


class ExperimentUseCases(Protocol):
    """Experiments that were run, and what is made of their results."""

    def find(self, text: str) -> str:
        """Return the id of the experiment that a person means.

        Args:
            text: An id, the beginning of one, or `last`.

        Raises:
            NotFoundError: There is no such experiment.
            InputError: Several begin like that, with the code `ambiguous`.
        """

    def results(self, experiment_id: str, *, verify: bool = False) -> ExperimentData:
        """Return all numbers of an experiment.

        Args:
            experiment_id: Which experiment.
            verify: Whether to look at every file of samples, and tell which results are damaged.

        Returns:
            The numbers; of a server, the folders of its entries have no path here.
        """

    def report(self, experiment_id: str, report_format: str = "html", *, strict: bool = False) -> bytes:
        """Return the report of an experiment as a document.

        Args:
            experiment_id: Which experiment.
            report_format: html, md, json, csv, junit or github.
            strict: Whether a gate that cannot be judged fails.
        """

    def keep_report(self, experiment_id: str, *, strict: bool = False) -> Path:
        """Write the HTML report to its place in this machine's home, and return where that is."""

    def delete(self, experiment_id: str, *, force: bool = False) -> None:
        """Delete an experiment and its results.

        Args:
            experiment_id: Which experiment.
            force: Delete also one that is marked as running.

        Raises:
            ConflictError: It is running, and is not to be deleted by force.
        """

    def export(self, experiment_id: str, to: Path, *, overwrite: bool = False) -> Path:
        """Write an experiment with its recipe, results and checksums into a folder.

        Args:
            experiment_id: Which experiment.
            to: The folder to make.
            overwrite: Replace a folder that is an export already.

        Returns:
            Where the folder is.

        Raises:
            ConflictError: The experiment is running, or the folder exists and is not to be overwritten.
        """

    def score(self, experiment_id: str, scores: NewScores) -> ScoredJobs:
        """Score the kept answers of an experiment again, without asking any model.

        Args:
            experiment_id: Which experiment.
            scores: What the user's own scorer says; where it names jobs, only these are scored.

        Raises:
            InputError: It keeps no answers (`no_answers`), or not those that `scores` are of.
        """

    def export_requests(self, experiment_id: str, export_format: str, to: Path) -> tuple[Path, ...]:
        """Write the requests of an experiment's loads into the folder `to`, in a format of other programs."""


class AnalysisUseCases(Protocol):
    """What analysis says of several results together."""

    def compare(self, names: Sequence[str], terms: Terms) -> Comparison:
        """Say how experiments or jobs stand against the first of them.

        Args:
            names: Experiments as a person writes them: ids, the beginnings of them, or `last`. A job's id goes on
                with its number.
            terms: What decides, and the smallest change that matters.
        """

    def gates(self, experiment_id: str, *, strict: bool = False, more: Sequence[str] = ()) -> GateReport:
        """Judge the gates of an experiment's recipe.

        Args:
            experiment_id: Which experiment.
            strict: Whether a gate that cannot be judged fails.
            more: Further gates, written as in a recipe.
        """

    def sweep(self, ids: Sequence[str], *, slo: Sequence[str] = ()) -> SweepReport:
        """Say what several loads show together: where they saturate, and which load holds the limits.

        Args:
            ids: Experiments whose jobs are the levels of load.
            slo: Limits instead of the recipe's, as `ttft_ms.p99=200`.

        Raises:
            InputError: A limit is not written like that, or the jobs are no sweep.
        """

    def matrix(self, ids: Sequence[str], terms: MatrixTerms) -> MatrixReport:
        """Compare the jobs of several experiments in rows and columns."""


class FileUseCases(Protocol):
    """Files of result folders, and nothing outside these."""

    def find(self, text: str) -> str:
        """Return the id of the job that a person means.

        Args:
            text: A job's id, of which the experiment's part may be abbreviated, or an experiment that has one job.

        Raises:
            NotFoundError: There is no such job.
            InputError: Several may be meant.
        """

    def listing(self, job_id: str) -> ResultFiles:
        """Return all files of a job's result.

        Raises:
            NotFoundError: There is no such job, or it has no result yet.
        """

    def text(self, job_id: str, name: str, *, offset: int = 0) -> LogPiece:
        """Return a piece of a text file, from an offset on, without control characters.

        Raises:
            NotFoundError: The result has no such file.
            InputError: It is no text.
        """

    def fetch(self, job_id: str, name: str, to: Path) -> Path:
        """Write one file, as it is, to the path `to`.

        Raises:
            NotFoundError: The result has no such file.
        """


class HistoryUseCases(Protocol):
    """Series of results over time, and what changed in them."""

    def find(self, text: str, *, branch: str | None = None) -> tuple[Series, ...]:
        """Return the series that a person means, at least one.

        Args:
            text: A recipe's name, which may have many, or the beginning of a series' id.
            branch: Of those with this name, the ones of this branch; empty: the default one; None: of all.

        Raises:
            NotFoundError: There is no such series.
        """

    def page(self, *, branch: str | None = None, limit: int = 100, cursor: str | None = None) -> Page[Series]:
        """Return series by name, of a branch (empty: the default one) or of all, a page at a time."""

    def get(self, series_id: str, *, metric: str | None = None) -> History:
        """Return one series with its points, levels and changes; of its headline metric, or of another."""

    def changes(self, *, branch: str | None = None, limit: int = 100, cursor: str | None = None) -> Page[Change]:
        """Return the changes that are open, of a branch (empty: the default one) or of all, the newest first, a page at
        a time."""

    def find_change(self, text: str) -> str:
        """Return the id of the change that a person means by it, or by the beginning of it.

        Raises:
            NotFoundError: There is no such change.
            InputError: Several begin like that, with the code `ambiguous`.
        """

    def ack(self, change_id: str, acknowledgement: Acknowledgement) -> Change:
        """Note that a person knows of a change."""

    def baseline(self, series_id: str) -> Baseline:
        """Return the result that a series is held against."""

    def set_baseline(self, series_id: str, baseline: NewBaseline) -> Baseline:
        """Hold a series against a result from now on."""

    def clear_baseline(self, series_id: str) -> None:
        """Hold a series against no result; the result itself stays."""

    def rebuild(self, progress: Callable[[int, int], None]) -> int:
        """Make every history again from the result folders; what people decided stays.

        Args:
            progress: Called with how many results were read, and how many there are.

        Returns:
            How many results are in a history.

        Raises:
            InputError: The histories are a server's, which only the machine that has its home can make again.
        """


class ScheduleUseCases(Protocol):
    """Recipes that a server runs again and again. A schedule is named by its id or its name."""

    def add(self, new: NewSchedule) -> Schedule:
        """Make a schedule; its recipe is checked first."""

    def page(self, *, limit: int = 100, cursor: str | None = None) -> Page[Schedule]:
        """Return schedules, a page at a time."""

    def get(self, schedule_id: str) -> Schedule:
        """Return one schedule."""

    def fires(self, schedule_id: str, *, limit: int = 100, cursor: str | None = None) -> Page[Fire]:
        """Return when it fired, the newest first, a page at a time."""

    def pause(self, schedule_id: str) -> Schedule:
        """Let nothing fire until it is resumed."""

    def resume(self, schedule_id: str) -> Schedule:
        """Go on with its next time."""

    def run(self, schedule_id: str) -> Fire:
        """Submit its recipe now, beside its times; without a server it waits for one."""

    def remove(self, schedule_id: str) -> None:
        """Forget it; its experiments stay."""


class AlarmUseCases(Protocol):
    """Conditions that a server watches, and whom it tells. An alarm is named by its id or its name."""

    def add(self, alarm: NewAlarm) -> MadeAlarm:
        """Make one; the secret that signs its webhooks is in this answer and never again."""

    def page(self, *, limit: int = 100, cursor: str | None = None) -> Page[Alarm]:
        """Return alarms, a page at a time."""

    def get(self, alarm_id: str) -> Alarm:
        """Return one alarm."""

    def incidents(self, alarm_id: str, *, limit: int = 100, cursor: str | None = None) -> Page[Incident]:
        """Return what it found, the newest first."""

    def deliveries(self, alarm_id: str, *, limit: int = 100, cursor: str | None = None) -> Page[Delivery]:
        """Return the messages that it sent, the newest first."""

    def test(self, alarm_id: str) -> TestAnswer:
        """Really send a message to each of its addresses."""

    def remove(self, alarm_id: str) -> None:
        """Forget an alarm."""


class ScriptUseCases(Protocol):
    """Folders of scripts that recipes name by their checksum."""

    def keep(self, sha256: str, content: Iterable[bytes]) -> None:
        """Keep the tar of a folder as it is now.

        Args:
            sha256: The checksum of the whole tar; one that is there already is not kept twice.
            content: The tar, in pieces.
        """


class UseCases(Protocol):
    """All that can be asked of this machine's home and of a server alike."""

    @property
    def experiments(self) -> ExperimentUseCases:
        """Experiments that were run."""

    @property
    def analyses(self) -> AnalysisUseCases:
        """What analysis says of several results together."""

    @property
    def files(self) -> FileUseCases:
        """Files of results."""

    @property
    def histories(self) -> HistoryUseCases:
        """Results over time."""

    @property
    def schedules(self) -> ScheduleUseCases:
        """What runs again and again."""

    @property
    def alarms(self) -> AlarmUseCases:
        """What is watched, and who is told."""

    @property
    def scripts(self) -> ScriptUseCases:
        """Folders of scripts that recipes name."""
