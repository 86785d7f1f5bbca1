"""How good the instrument is on this machine."""

from __future__ import annotations

from datetime import datetime

from prony.model.base import Noun
from prony.model.estimate import Estimate


class Calibration(Noun):
    """`figures` maps a metric of the instrument (see docs/metrics.md) to what was measured of it."""

    id: str
    hardware_id: str
    software_id: str
    taken_at: datetime
    figures: dict[str, Estimate]
    notes: tuple[str, ...] = ()
