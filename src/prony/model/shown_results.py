"""The results of an experiment with what a page needs to show them, whatever their kind is."""

from __future__ import annotations

from typing import Literal

from prony.model.base import Noun
from prony.model.check import Named
from prony.model.experiment_data import ExperimentData
from prony.model.metric import Better
from prony.model.section import Fact


class ResultColumn(Noun):
    """A column of numbers: the key of its estimates, what people call it, and how a number of it is written."""

    key: str
    label: str
    unit: str
    better: Better
    format: Literal["number", "share"] = "number"
    is_headline: bool = False


class ShownResults(ExperimentData):
    """What a page shows of an experiment.

    `answers` are the sentences to open with. `columns` begin with those to show where there is room for a few;
    `programs` are what was measured, by the id of a job; `exports` are the formats that its samples can be had in,
    beside those of every experiment.
    """

    answers: tuple[str, ...] = ()
    columns: tuple[ResultColumn, ...] = ()
    programs: dict[str, tuple[Fact, ...]] = {}
    exports: tuple[Named, ...] = ()
