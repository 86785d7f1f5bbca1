"""Judge by the undisturbed runs alone, where some were disturbed: what these show is not the machine's doing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prony.model.comparison import chance_text, percent_text
from prony.model.estimate import Grade, Summary, metric_in, verdict_on
from prony.model.result import Result
from prony.stats.quantiles import Array
from prony.stats.student import student_ratio_p

# So many on each side, or Welch's test says little.
_FEWEST = 3
_DISTURBED = "contaminated"
# Others who take a fifth of the CPU make a program up to a quarter slower, and twice that where caches suffer too.
MACHINE_EXPLAINS = 1.5
_LEVEL, _LEAST_P = 0.01, 0.0001


@dataclass(frozen=True)
class CleanWorsening:
    """How much worse every undisturbed run is than every one before: `least` is the smallest quotient, 2 is doubled.

    `p` is how likely chance alone shows as much.
    """

    least: float
    p: float
    runs: tuple[int, int]

    def is_plain(self, tests: int = 1) -> bool:
        """Is it more than a busy machine or chance explains, among so many numbers that are looked at?"""
        return self.least > MACHINE_EXPLAINS and self.p * tests < _LEVEL

    @property
    def text(self) -> str:
        return (
            f"the undisturbed runs alone, {self.runs[0]} against {self.runs[1]}, are all worse by at least "
            f"{percent_text(self.least - 1)} (p {'' if self.p < _LEAST_P else '= '}{chance_text(self.p)})"
        )


def worsening_of_clean(
    key: str, before: tuple[Summary, Result], after: tuple[Summary, Result]
) -> CleanWorsening | None:
    """Return how much worse a number is by its undisturbed runs; None where none was disturbed, or too few are left."""
    better = metric_in(after[0], key).better
    if not any(_has_disturbed(*one) for one in (before, after)) or better == "neither":
        return None
    old, new = (_clean_values(key, *one) for one in (before, after))
    if old is None or new is None or min(old.size, new.size) < _FEWEST:
        return None
    least = new.min() / old.max() if better == "lower" else old.min() / new.max()
    return CleanWorsening(float(least), student_ratio_p(old, new), (old.size, new.size))


def _clean_values(key: str, summary: Summary, result: Result) -> Array | None:
    """Return the number of each undisturbed run; None where the job is void for another reason, or they are unknown."""
    void = {one.code for one in verdict_on(summary, key).reasons if one.grade is Grade.VOID}
    values = np.array(summary.runs.get(key, ()), dtype=np.float64)
    if void - {_DISTURBED} or values.size != len(summary.used) or not (np.isfinite(values) & (values > 0)).all():
        return None
    disturbed = _disturbed_runs(result)
    return values[[index not in disturbed for index in summary.used]]


def _has_disturbed(summary: Summary, result: Result) -> bool:
    return bool(_disturbed_runs(result) & set(summary.used))


def _disturbed_runs(result: Result) -> set[int]:
    return {one.index for one in result.repetitions if one.contamination}
