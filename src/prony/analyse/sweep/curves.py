"""Group load jobs into curves of levels that differ in the amount of load alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from prony.analyse.estimates import pool_runs
from prony.analyse.load.window import runs_of
from prony.instruments.columns import Requests
from prony.model.estimate import Estimate, Grade
from prony.model.experiment_data import Entry
from prony.model.result import ResultState

if TYPE_CHECKING:
    import polars as pl

# The ways of load that have a level, where it stands in a recipe, and how a person says it.
LEVELS = {"closed": ("load.closed.concurrency", "users"), "open": ("load.open.rate", "requests a second")}
_LEVEL_PATHS = {path for path, _ in LEVELS.values()}
# Of a load: what says how long and how often it is carried out, and not what it is.
_LENGTHS: dict[str, Any] = dict.fromkeys(("duration", "requests", "slo", "repeats", "seeds", "errors"), True)
_LENGTH_AXES = ("load.duration", "load.requests", "load.closed.requests", "load.clients.processes")


@dataclass(frozen=True)
class LoadedJob:
    """One job that loaded a service; `samples` are its requests, None where nobody needs them or they are gone."""

    entry: Entry
    samples: pl.DataFrame | None = None
    telemetry: pl.DataFrame | None = None

    @property
    def level(self) -> float:
        """How much load was asked for: users, or requests a second."""
        load = self.entry.job.load
        return load.open.rate if load.open is not None else float(load.users.concurrency)

    @property
    def exclusion(self) -> str:
        """Why this job supports no claim; empty where it does."""
        if self.entry.result.state is ResultState.FAILED:
            return "the job failed"
        if self.entry.summary.verdict.grade is Grade.VOID:
            void = [one.text for one in self.entry.summary.verdict.reasons if one.grade is Grade.VOID]
            first = void[0].partition(". ")[0] if void else "see its verdict"
            return f"its numbers are void: {first}"
        return "" if self.values("throughput_per_s.p50") else "it has no throughput"

    @cached_property
    def requests(self) -> tuple[Requests, ...]:
        """The runs that count, with their requests."""
        if self.samples is None:
            return ()
        runs = runs_of(self.samples, self.entry.job.load, self.entry.result.repetitions)
        return tuple(runs[index] for index in self.entry.summary.used if index in runs)

    def values(self, key: str) -> tuple[float, ...]:
        return self.entry.summary.runs.get(key, ())


@dataclass(frozen=True)
class Group:
    """The jobs of one level of one curve: several where the same load was asked for more than once."""

    level: float
    jobs: tuple[LoadedJob, ...]

    @cached_property
    def counting_jobs(self) -> tuple[LoadedJob, ...]:
        return tuple(job for job in self.jobs if not job.exclusion)

    @property
    def grade(self) -> Grade:
        """The best there is: what is void beside something better does not count."""
        order = (Grade.VALID, Grade.SUSPECT, Grade.VOID)
        return min((job.entry.summary.verdict.grade for job in self.counting_jobs or self.jobs), key=order.index)

    def values(self, key: str) -> tuple[float, ...]:
        return tuple(value for job in self.counting_jobs for value in job.values(key))

    def estimate(self, key: str) -> Estimate | None:
        """Return the number of one job as it is, and of several the median of all their runs."""
        shown = self.counting_jobs or self.jobs
        if len(shown) == 1:
            return shown[0].entry.summary.estimates.get(key)
        return pool_runs([job.entry.summary for job in self.counting_jobs], key)


def is_sweepable(entry: Entry) -> bool:
    return entry.job.workload.section == "load" and entry.job.load.way in LEVELS


def group_by_level(jobs: Iterable[LoadedJob]) -> list[tuple[str, str, list[Group]]]:
    """Return (title, noun, levels in ascending order) of each curve, in the order in which they first appear."""
    curves: dict[str, list[LoadedJob]] = {}
    for job in jobs:
        curves.setdefault(_sameness(job), []).append(job)
    titles = _titles(list(curves.values()))
    found = []
    for title, mine in zip(titles, curves.values(), strict=True):
        levels = sorted({job.level for job in mine})
        groups = [Group(level, tuple(job for job in mine if job.level == level)) for level in levels]
        found.append((title, LEVELS[mine[0].entry.job.load.way][1], groups))
    return found


def _sameness(job: LoadedJob) -> str:
    """Return all that must be equal for two jobs to stand on one curve.

    How long a load lasts is not: requests may be so many of each user, and then all users together send more. Where a
    recipe sweeps over that too, its axis tells the curves apart."""
    one = job.entry.job
    load = one.load.model_dump(
        mode="json",
        exclude={"closed": {"concurrency", "requests"}, "open": {"rate"}, "clients": {"processes"}} | _LENGTHS,
    )
    load["closed"] = load["closed"] or {"think": None, "stagger": None}
    axes = {path: one.cell.get(path) for path in _LENGTH_AXES}
    same: list[Any] = [one.load.way, load, axes, one.workload.model_dump(mode="json")]
    return json.dumps([*same, job.entry.environment.device.hardware_id], sort_keys=True)


def _titles(curves: Sequence[Sequence[LoadedJob]]) -> list[str]:
    """Return a name for each curve of what tells it from the others; empty where there is only one."""
    if len(curves) == 1:
        return [""]
    firsts = [curve[0].entry for curve in curves]
    facts = [_facts(entry) for entry in firsts]
    differing = [name for name in facts[0] if len({fact.get(name) for fact in facts}) > 1]
    titles = [", ".join(fact[name] for name in differing if fact[name]) for fact in facts]
    alike = len(set(titles)) < len(titles)
    return [f"{title} ({entry.job.experiment_id})".strip() if alike else title
            for title, entry in zip(titles, firsts, strict=True)]  # fmt: skip


def _facts(entry: Entry) -> dict[str, str]:
    cell = ", ".join(
        f"{path.rpartition('.')[2].replace('_', ' ')} {value}" for path, value in entry.job.cell.items()
        if path not in _LEVEL_PATHS
    )  # fmt: skip
    return {"name": entry.job.name, "subject": entry.job.workload.subject, "cell": cell,
            "device": entry.environment.device.name}  # fmt: skip
