"""How good the instrument is on this machine."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from prony.model.base import Noun
from prony.model.estimate import Estimate

NoiseClass = Literal["quiet", "normal", "noisy", "unusable"]


class Calibration(Noun):
    """`figures` maps a metric of the instrument (see docs/metrics.md) to what was measured of it.

    `noise_class` and `alpha`, the level at which comparisons test here, are those of a deep calibration.
    """

    id: str
    hardware_id: str
    software_id: str
    taken_at: datetime
    figures: dict[str, Estimate]
    notes: tuple[str, ...] = ()
    noise_class: NoiseClass | None = None
    alpha: float | None = None
