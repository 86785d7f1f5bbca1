"""All that a report is written from: one experiment with the results, summaries and machines behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

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


class ExperimentData(Noun):
    experiment: Experiment
    entries: tuple[Entry, ...]
    calibration: Calibration | None = None
    gates: tuple[GateOutcome, ...] = ()
    # Where jobs differ in how much load there was.
    sweep: SweepReport | None = None
