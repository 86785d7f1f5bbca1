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
    # What else the machine did while it was taken: such figures are shown with it, and nothing is decided by them.
    disturbed: tuple[str, ...] = ()


def describe_disturbance(calibration: Calibration) -> str:
    """Return what disturbed a calibration, in words; empty where nothing did."""
    if not calibration.disturbed:
        return ""
    told = "; ".join(one.partition(": ")[2] or one for one in calibration.disturbed)
    return (
        f"its calibration of {calibration.taken_at:%Y-%m-%d} was disturbed ({told}): calibrate again on a quiet machine"
    )
