"""Members of gangs in, all of them told the same instant out. Kept in memory: who waits asks again and again."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field

from prony.model.gang import Meeting, Met

# From when the last has come to the common instant: the answer must reach everybody's clients before.
_LEAD_NS = 300_000_000


@dataclass
class _Place:
    said: dict[int, str] = field(default_factory=dict)
    all_here: asyncio.Event = field(default_factory=asyncio.Event)
    at_ns: int = 0


class Meetings:
    """Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], _Place] = {}

    async def come(self, gang: str, meeting: Meeting, index: int, of: int) -> Met | None:
        """Wait for the others; None when the patience ends before they are there. To come twice does no harm."""
        place = self._places.setdefault((gang, meeting.name), _Place())
        place.said[index] = meeting.says
        if len(place.said) == of and not place.at_ns:
            place.at_ns = time.perf_counter_ns() + _LEAD_NS
            place.all_here.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(meeting.wait_s):
                await place.all_here.wait()
        if not place.at_ns:
            return None
        return Met(said=tuple(text for _, text in sorted(place.said.items())), at_ns=place.at_ns)

    def forget(self, job_id: str) -> None:
        """Forget all meetings of a job, whatever attempt they were of."""
        self._places = {key: place for key, place in self._places.items() if not key[0].startswith(f"{job_id}.")}
