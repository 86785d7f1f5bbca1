"""The port of a kind of workload: what a package must have that the entry point group `prony.kinds` names.

A kind is a package with five modules. `schema` holds `SCHEMA`, the noun of its part of the recipe
(`model/workload.py`); `prepare`, `run`, `summary` and `report` each hold `PART`, an object of the class here that is
for it. Each module is loaded when it is asked for and none loads another, so that a runner never loads what writes
reports. What a part does not override is what holds for most kinds. A command of its own is an entry point of the group
`prony.commands`: a module with `arguments` and `command`, as those of `cli/commands` are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, cast

from prony.errors import InputError, PronyError
from prony.model.section import ColumnSpec, Fact, FigureType, Section
from prony.model.workload import MissingWorkload, Workload, kind_package, kind_packages, workload_schema

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import polars as pl

    from prony.model.assumption import Assumption
    from prony.model.check import Named
    from prony.model.device import AbilityReport, Environment
    from prony.model.estimate import Summary
    from prony.model.experiment_data import Entry, ExperimentData
    from prony.model.job import Job
    from prony.model.job_plot import JobPlot, OtherReading
    from prony.model.kind_card import KindForm
    from prony.model.picture import LoadRunSeries, StepLine
    from prony.model.recipe import Recipe
    from prony.model.result import Failure, Repetition, Result
    from prony.report.html.tags import Html
    from prony.runner.context import RunContext
    from prony.runner.parts import PartFolder

    Array = np.ndarray[Any, np.dtype[Any]]


class Needs(TypedDict, total=False):
    """What a device must have: fields of a `Demand`."""

    engine: str
    unit: str
    card: str | None
    precision: str | None
    scheme: str
    service: str
    containers: tuple[str, ...]
    launcher: str


class Prepare:
    """Before anything runs: what is wrong with a job, what it needs, and where its files are."""

    def check(self, job: Job) -> None:
        """Refuse a job that no machine could run, before anything is stored.

        Raises:
            InputError: a name that no plug-in has, or options that do not go together.
        """

    def check_here(self, jobs: Sequence[Job]) -> None:
        """Refuse jobs that this very machine cannot run.

        Raises:
            CapacityError: something that all of them need is missing here.
        """

    def make_paths_absolute(self, job: Job, base: Path) -> Job:
        """Return the job with paths that mean the same from any folder; they are relative to `base`."""
        del base
        return job

    def settings_of_checkout(self, checkout: Path, folders: Sequence[str]) -> dict[str, str]:
        """Return the settings, beside paths, with which a workload uses the files of one checkout of a repository.

        Args:
            checkout: The folder of the checkout.
            folders: Folders in it that programs import from.
        """
        del checkout, folders
        return {}

    def needs(self, workload: Any) -> Needs:
        """Return what a device must have to run this workload."""
        del workload
        return {}

    def images(self, job: Job) -> tuple[str, ...]:
        """Return the container images that a job names and uses."""
        del job
        return ()

    def service_images(self, job: Job) -> tuple[str, ...]:
        """Return the images of the services that a job starts: a pod must have their containers from its beginning."""
        del job
        return ()

    def access(self, engines: Sequence[str], abilities: Sequence[AbilityReport]) -> tuple[str, ...]:
        """Return how far a device with these engines looks into such a workload: white, gray, black."""
        del engines, abilities
        return ()

    def notes(self, jobs: Sequence[Job], machine: str) -> tuple[str, ...]:
        """Return what a person should know before jobs run with the programs of `machine`."""
        del jobs, machine
        return ()

    def refusals_here(self, jobs: Sequence[Job]) -> tuple[str, ...]:
        """Say what `prony run` would refuse on this machine."""
        del jobs
        return ()

    def try_once(self, job: Job, context: RunContext) -> tuple[Assumption, ...]:
        """Run a job once on this machine, unmeasured, and return what had to be chosen for it.

        Raises:
            InputError: what the job names cannot be read, or does not fit together.
            CapacityError: something that it needs is missing here.
            SutError: it failed for another reason.
        """
        del job, context
        return ()

    def key_behind(self, error: PronyError) -> str:
        """Return the key of the recipe that an error of `check` or `try_once` is about."""
        del error
        return "workload"

    def expected_seconds(self, job: Job) -> float | None:
        """Return how long a job says that it lasts; None where nobody can say."""
        del job
        return None

    def local_files(self, recipe: Recipe) -> list[str]:
        """Return what the recipe names that is a file of some machine, and does not travel."""
        del recipe
        return []

    def engine_version(self, workload: Any) -> tuple[str, str] | None:
        """Return the engine and the version of it that a workload asks for; None where it asks for none."""
        del workload
        return None

    def client_processes(self, recipe: Recipe) -> int:
        """Return how many client processes may be started ahead of a run in this process."""
        del recipe
        return 0

    def named_options(self, job: Job) -> Iterator[tuple[str, Any]]:
        """Return the checked options of plug-ins that a job names, each with its place in the recipe."""
        del job
        yield from ()


@dataclass(frozen=True)
class Merged:
    """The samples and runs of a job that several agents ran; `changes` are to fields of its result."""

    samples: pl.DataFrame
    repetitions: Sequence[Repetition]
    changes: Mapping[str, Any] = field(default_factory=dict)


class Run(ABC):
    """In the runner: jobs to result folders."""

    @abstractmethod
    def run(self, jobs: Sequence[Job], folders: Sequence[Path], context: RunContext) -> list[Result]:
        """Run jobs that belong together, each into its folder, and return their results in the same order."""

    def merge_parts(self, parts: Sequence[PartFolder], job: Job) -> Merged:
        """Return what the parts of a job make together that several agents ran.

        Raises:
            InputError: jobs of this kind are run by one agent.
        """
        del parts
        raise InputError(
            f"job {job.id} cannot run on several agents: its kind is {job.workload.kind}",
            hint="submit its recipe again, for one agent",
        )

    def first_failure(self, parts: Sequence[PartFolder]) -> Failure | None:
        """Return the failure with which it began, of parts that each tell one."""
        return parts[0].result.failure if parts else None


# Reads the stored samples of a result: all columns, or only these.
ReadColumns = Callable[[Sequence[str] | None], "pl.DataFrame"]


class Summarise(ABC):
    """Results to numbers."""

    @abstractmethod
    def summarise(
        self, job: Job, result: Result, samples: pl.DataFrame, *, environment: Environment | None = None
    ) -> Summary:
        """Return the summary of one job; the same input always gives the same."""

    def summarise_stored(
        self, job: Job, result: Result, read: ReadColumns, *, environment: Environment | None = None
    ) -> Summary:
        """The same, of samples that still lie on the disk."""
        return self.summarise(job, result, self.read_samples(read), environment=environment)

    def add_scores(self, job: Job, folder: Path, summary: Summary) -> Summary:
        """Return the summary with what the job's task says of the answers that its folder keeps.

        Args:
            job: Whose answers they are.
            folder: Its result folder.
            summary: What its samples say.
        """
        del job, folder
        return summary

    def read_samples(self, read: ReadColumns, *, is_whole: bool = True) -> pl.DataFrame:
        """Read the samples of a result; where not all of them are needed, without what takes the most room."""
        del is_whole
        return read(None)

    def drawn_metrics(self, job: Job, summary: Summary) -> tuple[str, ...]:
        """Return the metrics whose samples can be drawn, the headline's first."""
        del job, summary
        return ()

    def sample_values(self, job: Job, result: Result, samples: pl.DataFrame, metric: str) -> dict[int, Array]:
        """Return by repetition the numbers that count; a run without any is left out."""
        del job, result, samples, metric
        return {}

    def tracks(self, job: Job, result: Result, samples: pl.DataFrame) -> list[Any]:
        """Return the runs in time (`analyse.pictures.Track`), those that have samples, in order."""
        del job, result, samples
        return []

    def load_series(
        self, job: Job, result: Result, summary: Summary, samples: pl.DataFrame, points: int
    ) -> tuple[LoadRunSeries, ...]:
        """Return each run of a load second by second, or in longer steps where it has more than `points` of them."""
        del job, result, summary, samples, points
        return ()

    def work(self, entry: Entry, key: str) -> str:
        """Return what was done, as far as a metric depends on it: jobs of other work do not compete."""
        del key
        return entry.job.workload.subject

    # The charts that the web pages draw of a job's samples: `drawn_metrics` and `sample_values` are for a
    # distribution, `tracks` for a timeline, `Report.curves` for lines.
    figures: tuple[FigureType, ...] = ()


@dataclass(frozen=True)
class ReportPage:
    """A part of an experiment's page: its anchor, its name among the links, and whether it stands before the table."""

    anchor: str
    name: str
    body: Html
    is_before_results: bool = False


@dataclass(frozen=True)
class Drawings:
    """What is drawn of the jobs of one kind: parts of the page, and by the id of a job what its article shows."""

    pages: tuple[ReportPage, ...] = ()
    apart: Mapping[str, Html] = field(default_factory=dict)


class Report:
    """Numbers to documents: what tables, reports, the API and the web pages show of such a job."""

    # Beside the metrics that a summary names itself, which every table shows.
    columns: tuple[ColumnSpec, ...] = ()
    # The section whose first table stands below the results, where a job has too many numbers for columns of its own.
    readings: str = ""
    # The form for a new recipe, and the file of an example to begin with, as the web pages offer them.
    form: KindForm | None = None
    example: str = ""
    # How such numbers are made, as the method of a report tells it.
    method: tuple[str, ...] = (
        "Each run has one number of each metric, and intervals come from the spread between runs.",
        "Two jobs are called different only where their intervals do not overlap.",
    )

    def sections(self, entry: Entry) -> tuple[Section, ...]:
        """Return what is told of a job beside its numbers: by default everything that its recipe asks for."""
        written = entry.job.workload.model_dump(mode="json", exclude_none=True)
        return (Section(title=SETTINGS, facts=tuple((key, str(value)) for key, value in written.items())),)

    def draw(self, data: ExperimentData, apart: Collection[str]) -> Drawings:
        """Return the plots of jobs of this kind: of all together, and of those alone whose ids are in `apart`."""
        del data, apart
        return Drawings()

    def same_work(self, entry: Entry) -> str | None:
        """Return what must be equal for two jobs to do the same work, so that one may be called the fastest; None where
        nobody knows."""
        del entry
        return None

    # Headlines of other jobs whose numbers, read on the same machine, bound what such a job can reach.
    bounds: tuple[str, ...] = ()

    def plots(self, entries: Sequence[Entry], readings: Sequence[OtherReading]) -> tuple[JobPlot, ...]:
        """Return pictures of several jobs together; `readings` are of their machines, by the headlines in `bounds`."""
        del entries, readings
        return ()

    def findings(self, entries: Sequence[Entry]) -> list[str]:
        """Return plain sentences on jobs of this kind, in an experiment's report."""
        del entries
        return []

    def answers(self, entries: Sequence[Entry]) -> list[str]:
        """Return sentences that belong to the first that a page says, beside which job is the fastest."""
        del entries
        return []

    def curves(self, entry: Entry) -> list[StepLine]:
        """Return what was told step by step, as reports and the web pages draw it."""
        del entry
        return []

    def programs(self, entry: Entry) -> tuple[Fact, ...]:
        """Return what was measured, in few words, as it stands beside the machine: a program and its version."""
        del entry
        return ()

    def exports(self, recipe: Recipe) -> tuple[Named, ...]:
        """Return the formats that samples of such a recipe can be exported in, and what each is."""
        del recipe
        return ()

    def settings(self, workload: Any) -> dict[str, str]:
        """Return what was asked for, by the names of the columns of a CSV file."""
        del workload
        return {}


SETTINGS = "Requested and effective settings"


class WorkloadKind(Protocol):
    """A kind of workload."""

    @property
    def name(self) -> str:
        """What recipes call it."""

    @property
    def schema(self) -> type[Workload]:
        """Its part of the recipe."""

    @property
    def prepare(self) -> Prepare:
        """What is done before a job runs."""

    @property
    def run(self) -> Run:
        """What runs it."""

    @property
    def summary(self) -> Summarise:
        """What makes numbers of its results."""

    @property
    def report(self) -> Report:
        """What shows them."""


@dataclass(frozen=True)
class InstalledKind:
    """A kind whose parts are loaded from its package when they are asked for."""

    name: str
    package: str

    @property
    def schema(self) -> type[Workload]:
        """Return its part of the recipe."""
        return workload_schema(self.name)

    @cached_property
    def prepare(self) -> Prepare:
        """Return what checks and places its jobs."""
        return cast("Prepare", self._part("prepare", Prepare))

    @cached_property
    def run(self) -> Run:
        """Return what runs its jobs."""
        return cast("Run", self._part("run", Run))

    @cached_property
    def summary(self) -> Summarise:
        """Return what makes numbers of its samples."""
        return cast("Summarise", self._part("summary", Summarise))

    @cached_property
    def report(self) -> Report:
        """Return what tables and reports show of it."""
        return cast("Report", self._part("report", Report))

    def _part(self, name: str, base: type) -> object:
        part = import_module(f"{self.package}.{name}").PART
        if not isinstance(part, base):
            raise TypeError(f"{self.package}.{name}.PART is no {base.__module__}.{base.__name__}")
        found: object = part
        return found


class _MissingSummary(Summarise):
    def summarise(
        self, job: Job, result: Result, samples: pl.DataFrame, *, environment: Environment | None = None
    ) -> Summary:
        summary = find_kind(job.workload.kind).summary  # raises, and says what is missing
        return summary.summarise(job, result, samples, environment=environment)


class _MissingReport(Report):
    def sections(self, entry: Entry) -> tuple[Section, ...]:
        kind = entry.job.workload.kind
        return (Section(title="Not installed", note=describe_missing(kind)), *super().sections(entry))


def describe_missing(kind: str) -> str:
    """Say that a kind is not installed here, and what to do."""
    return f"The kind of workload {kind!r} is not installed here: install what brings it to see its own sections."


@dataclass(frozen=True)
class MissingKind:
    """Stands for a kind that is not installed: its results are listed and shown by what every kind has."""

    name: str

    @property
    def schema(self) -> type[Workload]:
        """Return what holds a workload that cannot be read."""
        return MissingWorkload

    @property
    def prepare(self) -> Prepare:
        """Refuse, and say what is missing."""
        return find_kind(self.name).prepare

    @property
    def run(self) -> Run:
        """Refuse, and say what is missing."""
        return find_kind(self.name).run

    @property
    def summary(self) -> Summarise:
        """Return what draws nothing, and refuses to make numbers."""
        return _MissingSummary()

    @property
    def report(self) -> Report:
        """Return what shows only that the kind is not installed."""
        return _MissingReport()


@cache
def find_kind(name: str) -> WorkloadKind:
    """Return a kind by its name.

    Raises:
        NotFoundError: it is not installed here.
    """
    return InstalledKind(name, kind_package(name))


def kind_of(workload: Workload) -> WorkloadKind:
    """Return the kind of a workload that is to be run."""
    return find_kind(workload.kind)


@cache
def shown_kind(name: str) -> WorkloadKind:
    """Return a kind whose results are to be shown; one that is not installed has a stand-in."""
    return find_kind(name) if name in kind_packages() else MissingKind(name)


def kind_names() -> tuple[str, ...]:
    """Return the names of all installed kinds."""
    return tuple(kind_packages())


def default_kinds() -> tuple[str, ...]:
    """Return the kinds that an agent runs unless its owner says otherwise."""
    return tuple(name for name in kind_names() if workload_schema(name).is_allowed_by_default)


def command_kinds() -> tuple[str, ...]:
    """Return the kinds whose jobs run commands: an owner who allows one of them lets submitters run any command."""
    return tuple(name for name in kind_names() if workload_schema(name).runs_commands)


def load_parts(part: str) -> None:
    """Load one part of every kind, ahead of the first use."""
    for name in kind_names():
        getattr(find_kind(name), part)
