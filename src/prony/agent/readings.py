"""Read this device's probes every few seconds, so that the server's figures show how it does.

Reading is a disturbance, if a small one: it is done seldom, off the event loop, and whoever asks gets the last values.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence

from prony.model.agent import MOST_READINGS
from prony.ports.probe import Probe
from prony.runner.observer import open_probes

PERIOD_S = 5.0


class DeviceReader:
    """Keeps what the probes of this device last read; `latest` is empty until then."""

    def __init__(self, probes: Sequence[Probe] | None = None, period_s: float = PERIOD_S) -> None:
        self._probes = probes
        self._period_s = period_s
        self.latest: Mapping[str, float] = {}

    async def run(self) -> None:
        """Read for as long as this is not cancelled."""
        while True:
            self.latest = await asyncio.to_thread(self.read)
            await asyncio.sleep(self._period_s)

    def read(self) -> dict[str, float]:
        """Read every probe once; the first time, find those that this device has."""
        if self._probes is None:
            self._probes = open_probes()
        found = {name: value for probe in self._probes for name, value in probe.read().items() if math.isfinite(value)}
        return dict(list(found.items())[:MOST_READINGS])
