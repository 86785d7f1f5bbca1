"""Probe of the CPU's energy counters (RAPL through powercap), by domain."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from prony.instruments import kernel

_FOLDER = "sys/class/powercap"


@dataclass
class _Meter:
    """One counter of the hardware, which starts again at zero when it is full."""

    file: Path
    range_uj: int
    last_uj: int = 0
    full_uj: int = 0

    def read_uj(self) -> int | None:
        """Return the energy since boot or before, grown past every wrap that happened between two readings.

        A counter that goes round twice unseen loses a round: at 200 W the smallest does so in five minutes.
        """
        now_uj = kernel.number(self.file)
        if now_uj is None:
            return None
        if now_uj < self.last_uj:
            self.full_uj += self.range_uj
        self.last_uj = now_uj
        return self.full_uj + now_uj


class RaplProbe:
    """Energy of each CPU package and of its memory. These two may be added up; `core` and `uncore` are parts of the
    package and `psys` holds all of it, so those are left out and no sum counts a joule twice."""

    name: ClassVar[str] = "rapl"

    def __init__(self, root: Path = kernel.ROOT) -> None:
        self._root = root
        self._meters: dict[str, _Meter] | None = None

    def available(self) -> str | None:
        """Return why no energy can be read, and the command that allows it."""
        domains = _domains(self._root)
        if not domains:
            return "no CPU energy counters (RAPL) on this machine: usual in a virtual machine and on ARM"
        if not any(os.access(folder / "energy_uj", os.R_OK) for folder in domains.values()):
            return (
                "only root can read the CPU's energy counters; to allow everyone until the next boot: "
                "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj"
            )
        return None

    def read(self) -> dict[str, float]:
        """Return `energy_<domain>_uj_total` for each domain that can be read."""
        if self._meters is None:
            self._meters = _meters(self._root)
        found = {f"energy_{name}_uj_total": meter.read_uj() for name, meter in self._meters.items()}
        return {name: float(value) for name, value in found.items() if value is not None}

    def watch(self, pids: Collection[int]) -> None:
        """Its counters are the whole machine's."""

    def close(self) -> None:
        """Nothing is held open."""


def _domains(root: Path) -> dict[str, Path]:
    """Return the folder of each domain that may be added up, by name: `package_0`, `package_0_dram`."""
    found: dict[str, Path] = {}
    # `intel-rapl-mmio` repeats the package through another door; the pattern passes it over. AMD uses the same names.
    for folder in kernel.folders(root / _FOLDER, "intel-rapl:*"):
        name = (kernel.read_text(folder / "name") or "").replace("-", "_")
        outer = (
            kernel.read_text(folder.parent / folder.name.rpartition(":")[0] / "name")
            if folder.name.count(":") > 1
            else ""
        )
        if name.startswith("package"):
            found[name] = folder
        elif name == "dram":
            found[f"{(outer or 'package').replace('-', '_')}_dram"] = folder
    return found


def _meters(root: Path) -> dict[str, _Meter]:
    ranges = {name: kernel.number(folder / "max_energy_range_uj") for name, folder in _domains(root).items()}
    # Without its range a counter's wrap cannot be told from nothing: such a one is not read.
    return {name: _Meter(_domains(root)[name] / "energy_uj", most) for name, most in ranges.items() if most}
