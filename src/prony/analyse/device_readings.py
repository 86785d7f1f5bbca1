"""Turn what probes read of a device into quantities that people know: shares, rates and states."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from prony.model.device import Hardware
from prony.model.device_history import ReadingLine

Reading = Mapping[str, float]
HOST = "host"


class _Quantity(NamedTuple):
    """What a counter becomes; `{0}` in the title is what the pattern's group matched.

    A counter that ends in `_total` only grows and is shown as its rate, in `scale` units.
    """

    pattern: re.Pattern[str]
    title: str
    unit: str
    scale: float = 1.0


def _quantity(pattern: str, title: str, unit: str, scale: float = 1.0) -> _Quantity:
    return _Quantity(re.compile(pattern), title, unit, scale)


# Times of arrival that lie closer together say little of the time between two readings.
_LEAST_S = 1.0
_MEMORY = "memory_available_mib"
# A share of one core, for each second: divided by the cores, it is one of the machine.
_OF_CORES = re.compile(r"cpu_(busy|iowait|steal)_s_total")
# In the order in which they are shown; a counter that is not here is not.
_QUANTITIES = (
    _quantity(r"cpu_busy_s_total", "CPU busy", "%", 100.0),
    _quantity(r"cpu_iowait_s_total", "CPU waiting for disks", "%", 100.0),
    _quantity(r"cpu_steal_s_total", "CPU taken by other virtual machines", "%", 100.0),
    _quantity(r"frequency_mean_mhz", "CPU clock", "MHz"),
    _quantity(r"temperature_max_c", "CPU temperature", "°C"),
    _quantity(_MEMORY, "memory used", "MiB"),
    _quantity(r"energy_([a-z0-9_]+)_uj_total", "power of {0}", "W", 1e-6),
    _quantity(r"disk_read_bytes_total", "disk reads", "B/s"),
    _quantity(r"disk_written_bytes_total", "disk writes", "B/s"),
    _quantity(r"network_received_bytes_total", "network received", "B/s"),
    _quantity(r"network_sent_bytes_total", "network sent", "B/s"),
    _quantity(r"gpu(\d+)_busy", "GPU {0} busy", "%", 100.0),
    _quantity(r"gpu(\d+)_sm_mhz", "GPU {0} clock", "MHz"),
    _quantity(r"gpu(\d+)_power_w", "GPU {0} power", "W"),
    _quantity(r"gpu(\d+)_temperature_c", "GPU {0} temperature", "°C"),
    _quantity(r"gpu(\d+)_memory_used_mib", "GPU {0} memory used", "MiB"),
)


def derive_readings(at_s: Sequence[float], readings: Sequence[Reading], hardware: Hardware | None) -> list[ReadingLine]:
    """Return a line for each quantity that has a value, host first and then each GPU. A rate takes two readings.

    Args:
        at_s: When each reading came, in seconds of any clock that does not jump.
        readings: The values of every counter at these instants.
        hardware: The device, as the agent tells it: cores make shares of the CPU, memory makes what is used.
    """
    names = dict.fromkeys(name for reading in readings for name in reading)
    found = []
    for place, quantity in enumerate(_QUANTITIES):
        for name in names:
            match = quantity.pattern.fullmatch(name)
            values = _values_of(name, quantity, at_s, readings, hardware) if match else ()
            if match and any(value is not None for value in values):
                part = name.partition("_")[0] if name.startswith("gpu") else HOST
                title = quantity.title.format(*match.groups())
                line = ReadingLine(name=name, title=title, unit=quantity.unit, part=part, values=values)
                found.append((part != HOST, _number_of(part), place, line))
    return [line for *_, line in sorted(found, key=lambda one: one[:3])]


def _number_of(part: str) -> int:
    digits = part.removeprefix("gpu")
    return int(digits) if digits.isdecimal() else 0


def _values_of(
    name: str, quantity: _Quantity, at_s: Sequence[float], readings: Sequence[Reading], hardware: Hardware | None
) -> tuple[float | None, ...]:
    read = [reading.get(name) for reading in readings]
    if name.endswith("_total"):
        rates = [_rate(at_s, read, place) for place in range(len(read))]
        if not _OF_CORES.fullmatch(name):
            return tuple(None if rate is None else rate * quantity.scale for rate in rates)
        cores = _cores(hardware)
        # A message that was held up squeezes the time: no machine is busier than all of its cores.
        shares = [None if rate is None or not cores else min(rate / cores, 1.0) for rate in rates]
        return tuple(None if share is None else share * quantity.scale for share in shares)
    if name == _MEMORY:
        whole = hardware.memory_mib if hardware is not None else None
        return tuple(None if value is None or not whole else max(0.0, whole - value) for value in read)
    return tuple(None if value is None else value * quantity.scale for value in read)


def _rate(at_s: Sequence[float], read: Sequence[float | None], place: int) -> float | None:
    """Return the growth for each second up to a reading; None where the counter began anew or was not read.

    What came at almost the same time, as at the end of a job, is measured against an earlier reading.
    """
    begin = next((one for one in range(place - 1, -1, -1) if at_s[place] - at_s[one] >= _LEAST_S), None)
    if begin is None:
        return None
    values = [value for value in read[begin : place + 1] if value is not None]
    if len(values) <= place - begin or any(later < earlier for earlier, later in pairwise(values)):
        return None
    return (values[-1] - values[0]) / (at_s[place] - at_s[begin])


def _cores(hardware: Hardware | None) -> int:
    return (hardware.cpu.logical_cores or 0) if hardware is not None else 0
