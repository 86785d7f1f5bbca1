"""All that a report is written from: an experiment, its results, summaries and machines, and its analysis."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from prony.model.base import Noun
from prony.model.calibration import Calibration
from prony.model.comparison import Comparison
from prony.model.device import Environment
from prony.model.estimate import Summary
from prony.model.experiment import Experiment
from prony.model.gate import GateOutcome
from prony.model.history import History
from prony.model.job import Job
from prony.model.job_plot import JobPlot
from prony.model.matrix import MatrixReport, Worth
from prony.model.result import Result
from prony.model.sweep import SweepReport


class Entry(Noun):
    """One job of the experiment; `folder` is where its samples lie."""

    job: Job
    result: Result
    summary: Summary
    environment: Environment
    folder: Path

    @property
    def ended_early(self) -> Literal["", "cut", "stopped"]:
        """Whether a load that counts ended before it had sent all requests: its time limit cut it, or its user stopped
        it; empty where neither did."""
        if self.job.workload.section != "load":
            return ""
        counted = [one for one in self.result.repetitions if one.index in self.summary.used]
        if any(one.stopped_by == "stop" for one in counted):
            return "stopped"
        return "cut" if any(one.stopped_by == "time" for one in counted) else ""


class Damage(Noun):
    """One result that is no longer what its runner left."""

    experiment_id: str
    job_id: str
    what: str


class StoreCheck(Noun):
    """How many results were looked at, and those that are damaged."""

    results: int
    damages: tuple[Damage, ...] = ()


class ExperimentData(Noun):
    """An experiment with all that a report shows of it."""

    experiment: Experiment
    entries: tuple[Entry, ...]
    calibration: Calibration | None = None
    gates: tuple[GateOutcome, ...] = ()
    # Where jobs differ in how much load there was.
    sweep: SweepReport | None = None
    # Of jobs together, where their kinds draw any.
    plots: tuple[JobPlot, ...] = ()
    # Results whose files are damaged, where they were to be verified.
    damages: tuple[Damage, ...] = ()


class AnalysedExperiment(ExperimentData):
    """What reaches beyond the experiment's own numbers; apart from them, because a run need not wait for it."""

    # The sides of a duet.
    comparison: Comparison | None = None
    # Of each series with earlier results, in the order of the jobs.
    histories: tuple[History, ...] = ()
    # Where jobs differ in two things.
    matrix: MatrixReport | None = None
    # By job, where there is a price or an energy counter.
    worths: dict[str, tuple[Worth, ...]] = {}
    # How the analysis above decides, a sentence each.
    methods: tuple[str, ...] = ()
    # What could not be said, and why.
    untold: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: ExperimentData) -> Self:
        """Return it as it is, or of plain data one that says nothing more."""
        return data if isinstance(data, cls) else cls(**dict(data))
