"""What was asked of a comparison, and what came out: pairs of jobs, and for each metric of a pair one conclusion."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Literal

from pydantic import Field

from prony.model.base import Noun
from prony.model.estimate import Estimate, Verdict
from prony.model.metric import Better
from prony.model.quantity import Share
from prony.model.workload import Scalar

OWN_RULE = "prony"


class Conclusion(StrEnum):
    """`different` is of metrics of which neither way is better, `within` of a fixed limit that was not passed."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    INSUFFICIENT = "insufficient"
    DIFFERENT = "different"
    WITHIN = "within"


class Terms(Noun):
    """How to compare: the smallest change that matters, which metrics decide, and what may differ."""

    threshold: Share = Field(default=0.03, description="the smallest change that matters")
    metrics: tuple[str, ...] = Field(
        default=(), description="metrics that decide; default: the headlines of each workload"
    )
    across: tuple[str, ...] = Field(default=(), description="settings that may differ, such as engine")
    anyway: bool = Field(
        default=False, description="compare even if the results are not comparable, and list the differences"
    )
    rule: str = Field(default=OWN_RULE, description="rule that decides: prony, or that of another program")
    level: float = Field(
        default=0.01,
        gt=0,
        le=0.01,
        description="significance level of one test; lower on a machine with many false alarms",
    )


class Effect(Noun):
    """By how much the candidate differs: as a ratio to the baseline, or of shares as a difference.

    `p` is how often chance alone would show as much, `q` the same among all that were compared at once; `delta` is
    Cliff's, `noise` the relative spread between runs, `detectable` the smallest change that these runs could show.
    Where the sides were measured apart, `apart` is the relative spread between two whole results of the same thing,
    learned of `apart_results` earlier ones or assumed; `apart_calibrated` is what a deep calibration saw of one result,
    which is believed where it is more. `apart_p` and `apart_q` say how often that alone shows as much.
    """

    scale: Literal["ratio", "difference"] = "ratio"
    value: float
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    p: float | None = None
    q: float | None = None
    delta: float | None = None
    runs: tuple[int, int] = (0, 0)
    # What `runs` counts: runs of a side, or items that both sides were scored on.
    counted: Literal["runs", "items"] = "runs"
    noise: float | None = None
    detectable: float | None = None
    apart: float | None = None
    apart_results: int = 0
    apart_calibrated: float | None = None
    apart_p: float | None = None
    apart_q: float | None = None
    method: str

    @property
    def change(self) -> str:
        """`+5.1 %`, or of shares `+0.20 points`."""
        return self._written(self.value)

    @property
    def interval(self) -> str:
        """`[+4.2 %, +6.0 %]`; empty where there is none, or one of no width."""
        if self.low is None or self.high is None or self.low == self.high:
            return ""
        return f"[{self._written(self.low)}, {self._written(self.high)}]"

    @property
    def chance(self) -> str:
        """`p` as people write it; empty where nothing was tested."""
        return "" if self.p is None else chance_text(self.p)

    def _written(self, value: float) -> str:
        return f"{value * 100:+.2f} points" if self.scale == "difference" else percent_text(value - 1, sign="+")


_MOST_PERCENT_DIGITS = 4
# What a comparison decides by: one test alone, and all at once.
_DECISIVE = (0.01, 0.025)


def percent_text(share: float, sign: Literal["+", ""] = "") -> str:
    """Return `5.1 %`, with a digit more where it is small and none where it is large.

    Limits are whole percents, mostly: what lies below one is not written as if it had reached it, nor as 0.
    """
    value = share * 100
    digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 0.995 or value == 0 else 2
    while 0 < digits < _MOST_PERCENT_DIGITS and abs(value) < 10 and _is_whole_by_rounding(value, digits):
        digits += 1
    text = f"{value:{sign}.{digits}f}"
    if not float(text):
        text = f"{0.0:{sign}.1f}"
    return f"{text if sign else text.removesuffix('.0')} %"


def _is_whole_by_rounding(value: float, digits: int) -> bool:
    rounded = round(value, digits)
    is_raised = abs(rounded) - abs(value) > 1e-9 or (not rounded and bool(value))
    return is_raised and rounded == round(rounded)


def effect_text(effect: float, low: float | None = None, high: float | None = None) -> str:
    """Return `+8.7 % [+6.6 %, +19.2 %]` of shares, the ends rounded outwards; without ends, the effect alone."""
    text = _points(effect)
    if low is None or high is None:
        return text
    # The inner rounding takes away what a float adds: 0.066 * 1000 is 66.00000000000001.
    ends = (math.floor(round(low * 1000, 6)) / 1000, math.ceil(round(high * 1000, 6)) / 1000)
    return f"{text} [{_points(ends[0])}, {_points(ends[1])}]"


def _points(share: float) -> str:
    return f"{share * 100:+.1f} %"


def chance_text(p: float) -> str:
    """Return a probability with two digits, and a bound below what can be told.

    One that lies just below a level which decides is rounded down: it is not written as that level.
    """
    if p < 0.0001:
        return "<0.0001"
    text = f"{p:.2g}"
    if any(p < level <= float(text) for level in _DECISIVE):
        step = 10.0 ** (math.floor(math.log10(p)) - 1)
        text = f"{math.floor(p / step) * step:.2g}"
    return text


class Contrast(Noun):
    """One metric of two jobs. Those in the role `headline` decide; the others show what lies behind it."""

    key: str
    unit: str
    better: Better
    role: Literal["headline", "supporting"]
    family: str
    baseline: Estimate | None = None
    candidate: Estimate | None = None
    effect: Effect | None = None
    conclusion: Conclusion
    sentence: str
    # How many more runs on each side would settle it; None where that is not the question.
    more_runs: int | None = None
    # Why a change decides nothing by itself, and what to do; empty where it does decide.
    doubt: str = ""
    # What the numbers alone say, where the doubt made this inconclusive.
    apparent: Conclusion | None = None


class Difference(Noun):
    """One thing in which two jobs are not the same. `allowed`: software, or what was named to differ."""

    kind: Literal["hardware", "model", "settings", "software"]
    path: str
    baseline: str
    candidate: str
    allowed: bool


class Compared(Noun):
    """One job of a comparison, and whether its own numbers may be quoted."""

    experiment_id: str
    job_id: str
    title: str
    cell: dict[str, Scalar] = {}
    verdict: Verdict


class MachineChange(Noun):
    """How fast the machine itself was beside both sides, by the canary of each run: candidate by baseline."""

    ratios: dict[str, float] = {}
    changed: bool = False
    sentence: str = ""


class Match(Noun):
    """Two jobs that were compared. `interleaved`: they took turns on one machine, so a drift falls on both alike."""

    title: str
    baseline: Compared
    candidate: Compared
    interleaved: bool = False
    # None where a side has no canary.
    machine: MachineChange | None = None
    differences: tuple[Difference, ...] = ()
    contrasts: tuple[Contrast, ...] = ()


class Comparison(Noun):
    """`baseline` and `candidates` are what was named; `unmatched` tells of jobs that have no partner."""

    terms: Terms
    baseline: str
    candidates: tuple[str, ...]
    matches: tuple[Match, ...] = ()
    unmatched: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    conclusion: Conclusion
    sentence: str

    @property
    def headlines(self) -> list[Contrast]:
        return [one for match in self.matches for one in match.contrasts if one.role == "headline"]

    def has(self, *conclusions: Conclusion) -> bool:
        """Does a headline end so?"""
        return any(one.conclusion in conclusions for one in self.headlines)

    def fails(self, *conclusions: Conclusion, doubtful: bool = False) -> bool:
        """Does a headline end so, and may that fail a build? With `doubtful`, also what the machine may explain."""
        if doubtful:
            return any({one.conclusion, one.apparent} & set(conclusions) for one in self.headlines)
        return any(one.conclusion in conclusions and (not one.doubt or one.apparent) for one in self.headlines)
