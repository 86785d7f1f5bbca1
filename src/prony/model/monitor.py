"""What a machine does at one moment: its cores, memory, processes and cards."""

from __future__ import annotations

from datetime import datetime

from prony.model.base import Noun


class ProcessMoment(Noun):
    """One process: how much of one core it used since the reading before, and its memory."""

    pid: int
    name: str
    cpu_percent: float | None = None
    memory_mib: float | None = None


class CardMoment(Noun):
    """One GPU; None is what its driver does not tell."""

    index: int
    name: str
    vendor: str = "nvidia"
    clock_mhz: float | None = None
    max_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    busy_percent: float | None = None
    memory_busy_percent: float | None = None
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    # What holds its clock down.
    held_by: tuple[str, ...] = ()
    # Who uses it, with the device memory of each; None where the driver does not tell.
    processes: tuple[ProcessMoment, ...] | None = None


class MachineMoment(Noun):
    """The machine between two readings; `window_s` lies between them."""

    taken_at: datetime
    window_s: float
    cpu_percent: float | None = None
    core_percents: dict[int, float] = {}
    clock_mhz: float | None = None
    temperature_c: float | None = None
    load_average: tuple[float, ...] = ()
    memory_used_mib: float
    memory_total_mib: float
    swap_used_mib: float
    swap_total_mib: float
    # Share of the time in which some task waited for it.
    pressure_percents: dict[str, float] = {}
    processes: tuple[ProcessMoment, ...] = ()
    cards: tuple[CardMoment, ...] = ()
    # Why there are no cards.
    cards_note: str = ""
