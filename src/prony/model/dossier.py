"""All that a report is written from: one experiment with the results, summaries and machines behind it."""

from __future__ import annotations

from pathlib import Path

from prony.model.base import Noun
from prony.model.calibration import Calibration
from prony.model.device import Environment
from prony.model.estimate import Summary
from prony.model.experiment import Experiment
from prony.model.gate_outcome import GateOutcome
from prony.model.job import Job
from prony.model.result import Result
from prony.model.sweep import SweepReport


class Entry(Noun):
    """One job of the experiment; `folder` is where its samples lie."""

    job: Job
    result: Result
    summary: Summary
    environment: Environment
    folder: Path


class Dossier(Noun):
    experiment: Experiment
    entries: tuple[Entry, ...]
    calibration: Calibration | None = None
    gates: tuple[GateOutcome, ...] = ()
    # Where jobs differ in how much load there was.
    sweep: SweepReport | None = None
