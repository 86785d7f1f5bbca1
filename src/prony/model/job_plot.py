"""A picture of several jobs together: what they reach along one setting, and what the hardware allows."""

from __future__ import annotations

from typing import Literal

from prony.model.base import Noun
from prony.model.estimate import Estimate


class PlotPoint(Noun):
    """One job, or one place of a bound; ends of intervals are None where there are none."""

    x: float
    y: float
    x_low: float | None = None
    x_high: float | None = None
    y_low: float | None = None
    y_high: float | None = None
    label: str = ""
    is_void: bool = False


class PlotLine(Noun):
    """`line` joins measured points, `points` does not, `bound` is what the hardware allows at most, and `front` joins
    those that no other is better than in both."""

    name: str
    role: Literal["line", "points", "bound", "front"]
    points: tuple[PlotPoint, ...]


class JobPlot(Noun):
    """`notes` say where bounds come from and what is not drawn."""

    title: str
    x_title: str
    y_title: str
    lines: tuple[PlotLine, ...]
    notes: tuple[str, ...] = ()


class OtherReading(Noun):
    """What another job read of the same machine; `device` is the part of it that was measured, as its result says."""

    hardware_id: str
    device: str
    job_id: str
    estimates: dict[str, Estimate]
