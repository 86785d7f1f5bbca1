"""An experiment with all that analysis says of it: what a report is written from."""

from __future__ import annotations

from typing import Self

from prony.model.comparison import Comparison
from prony.model.experiment_data import ExperimentData
from prony.model.history import History
from prony.model.matrix import MatrixReport, Worth


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
