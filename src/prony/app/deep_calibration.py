"""Calibrate deeply: measure the machine's noise class, false alarm rate and test level by equal runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from prony.analyse.compare.effect import conclude, effect_of
from prony.analyse.noise import alpha_for, noise_class, noise_figures, warnings
from prony.errors import MeasurementError
from prony.model.calibration import NoiseClass
from prony.model.comparison import Conclusion, Terms
from prony.model.estimate import Estimate
from prony.runner.calibration import equal_runs
from prony.stats.quantiles import Array

_CALLED_DIFFERENT = (Conclusion.REGRESSION, Conclusion.IMPROVEMENT)


@dataclass(frozen=True)
class Depth:
    """What a deep calibration adds to one."""

    figures: dict[str, Estimate]
    noise_class: NoiseClass
    alpha: float
    notes: tuple[str, ...]


def calibrate_deep(scratch: Path, *, runs: int, progress: Callable[[int, int], None]) -> Depth:
    """Measure one and the same thing in so many fresh processes, and try on it the rule that comparisons go by."""
    medians = equal_runs(scratch, count=runs, progress=progress)
    figures = noise_figures(medians, differ)
    if not figures:
        raise MeasurementError(
            "these runs have no median to compare",
            hint="the machine may be overloaded: calibrate again when it is idle",
        )
    return Depth(figures, noise_class(figures["run_noise"].value), alpha_for(figures), tuple(warnings(medians)))


def differ(first: Array, second: Array) -> bool:
    """Would a comparison call these two sets of runs different?"""
    effect = effect_of(first.tolist(), second.tolist())
    return not isinstance(effect, str) and conclude(effect, "lower", Terms().threshold) in _CALLED_DIFFERENT
