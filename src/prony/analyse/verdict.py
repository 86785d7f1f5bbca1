"""Make a verdict of the reasons that rules gave: the worst decides.

Rules judge evidence: the job, its result and what the statistics made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prony.analyse.runs import MeasuredRun
from prony.analyse.selection import Selection
from prony.model.device import Environment
from prony.model.estimate import DETECTABLE_CHANGE, Estimate, Grade, Reason, Verdict
from prony.model.job import Job
from prony.model.result import Result

_WORST_FIRST = (Grade.VOID, Grade.SUSPECT, Grade.VALID)


def verdict_of(reasons: Iterable[Reason]) -> Verdict:
    """Return the verdict that these reasons make: the worst decides.

    What a comparison could show is not said of void numbers, which are not compared.
    """
    ordered = sorted(reasons, key=lambda reason: _WORST_FIRST.index(reason.grade))
    if ordered and ordered[0].grade is Grade.VOID:
        ordered = [reason for reason in ordered if reason.code != DETECTABLE_CHANGE]
    return Verdict(grade=ordered[0].grade if ordered else Grade.VALID, reasons=tuple(ordered))


@dataclass(frozen=True)
class Evidence:
    """`runs` are those of `selection.used`, in the same order; `headline` is None where nothing was measured.

    `refused` has by key why a percentile has no interval.
    """

    job: Job
    result: Result
    selection: Selection
    runs: tuple[MeasuredRun, ...]
    headline: Estimate | None
    environment: Environment | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    estimates: Mapping[str, Estimate] = field(default_factory=dict)

    @property
    def numbers(self) -> list[float]:
        """The one number of each run that decides; what its unit is depends on the workload."""
        medians = [run.statistic("p50") for run in self.runs]
        return [median for median in medians if median is not None]


# A rule looks at the evidence and gives a reason for each thing that a reader of the number must know.
Rule = Callable[[Evidence], Iterator[Reason]]


def void(code: str, text: str) -> Reason:
    return Reason(code=code, text=text, grade=Grade.VOID)


def suspect(code: str, text: str) -> Reason:
    return Reason(code=code, text=text, grade=Grade.SUSPECT)


def note(code: str, text: str) -> Reason:
    """Return a reason that takes nothing from the number, and that its reader should see all the same."""
    return Reason(code=code, text=text, grade=Grade.VALID)


def percent(share: float) -> str:
    value = share * 100
    return f"{value:,.0f} %" if abs(value) >= 1000 else f"{value:.3g} %"


def runs_text(count: int, kind: str = "") -> str:
    return f"{count} {kind} run{'' if count == 1 else 's'}".replace("  ", " ")
