"""Let the members of a gang wait for each other, and choose when all of them go on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from prony.model.event import Live
from prony.model.gang import Meeting, Met

# From when the last has come to the common instant: the answer must reach everybody's clients before.
_LEAST_LEAD_NS = 300_000_000
_MOST_LEAD_NS = 30_000_000_000
# A far member is given as many of its slowest round trips as this.
_ROUND_TRIPS = 10


def start_lead_ns(round_trips_ns: Sequence[int]) -> int:
    """Return how long after the last has come all go on, by the slowest round trip that each of them saw."""
    return min(max(_LEAST_LEAD_NS, _ROUND_TRIPS * max(round_trips_ns, default=0)), _MOST_LEAD_NS)


@dataclass
class _Place:
    come: dict[int, Meeting] = field(default_factory=dict)
    all_here: asyncio.Event = field(default_factory=asyncio.Event)
    at_ns: int = 0


class Meetings:
    """Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], _Place] = {}

    async def come(self, gang: str, meeting: Meeting, index: int, of: int) -> Met | None:
        """Wait for the others; None when the patience ends before they are there. To come twice does no harm."""
        place = self._places.setdefault((gang, meeting.name), _Place())
        place.come[index] = meeting
        if len(place.come) == of and not place.at_ns:
            lead_ns = start_lead_ns([one.round_trip_ns for one in place.come.values()])
            place.at_ns = time.perf_counter_ns() + lead_ns
            place.all_here.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(meeting.wait_s):
                await place.all_here.wait()
        if not place.at_ns:
            return None
        return Met(said=tuple(one.says for _, one in sorted(place.come.items())), at_ns=place.at_ns)

    def forget(self, job_id: str) -> None:
        """Forget all meetings of a job, whatever attempt they were of."""
        self._places = {key: place for key, place in self._places.items() if not key[0].startswith(f"{job_id}.")}


def add_lives(lives: Sequence[Live]) -> Live:
    """Add up how a load goes for each member. Percentiles of several are none of all, so there are none."""
    run = max(one.run for one in lives)
    lives = [one for one in lives if one.run == run]
    return Live(
        run=run,
        elapsed_s=max(one.elapsed_s for one in lives),
        left_s=max((one.left_s for one in lives if one.left_s is not None), default=None),
        sent=sum(one.sent for one in lives),
        done=sum(one.done for one in lives),
        failed=sum(one.failed for one in lives),
        in_flight=sum(one.in_flight for one in lives),
        rate_per_s=sum(one.rate_per_s for one in lives),
    )
