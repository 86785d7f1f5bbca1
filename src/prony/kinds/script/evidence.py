"""What the verdict on a script is judged on: what every verdict is, and the numbers that it told."""

from __future__ import annotations

from dataclasses import dataclass

from prony.analyse.evidence import Evidence
from prony.kinds.script.samples import Series
from prony.model.metric import Metric


@dataclass(frozen=True)
class ScriptEvidence(Evidence):
    """`headlines` is the headline of each run that has one; `series` is everything that was told, of `metrics`."""

    headlines: tuple[float, ...] = ()
    series: tuple[Series, ...] = ()
    metrics: tuple[Metric, ...] = ()

    @property
    def numbers(self) -> list[float]:
        return list(self.headlines)
