"""Notes of what was committed in, a stream that tells what changed out: which nouns, not how they stand now.

Who was cut off comes back with the id of the last thing heard, and is told what followed; where that is too long ago,
or was another server's, it is told to look at everything anew.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Iterable

from prony.model.event import Changed
from prony.store.writer import ChangeNote

# So many changes are remembered for those who come back; a page that missed more looks at everything anew.
_MOST = 5000
# What happens within this time is told as one: a thousand jobs a second are no thousand messages.
GATHER_S = 0.25
# Ids in one message; beyond, a page looks at everything anew, which costs less.
_MOST_IDS = 200
_EXPERIMENTS, _AGENTS = "experiments", "agents"
_NOUNS = {"job": _EXPERIMENTS, "agent": _AGENTS}
_TOPICS = frozenset({"alarms", "schedules", "changes"})


class Feed:
    """The last changes, in order; `told` wakes those who wait."""

    def __init__(self, *, gather_s: float = GATHER_S) -> None:
        self._life = secrets.token_hex(4)
        self._gather_s = gather_s
        self._recent: deque[tuple[str, str]] = deque(maxlen=_MOST)
        self._count = 0
        self._told = asyncio.Event()

    def hear(self, notes: Iterable[ChangeNote]) -> None:
        """Remember what pages may show; called in the loop."""
        before = self._count
        for note in notes:
            noun = _NOUNS.get(note.topic, note.topic if note.topic in _TOPICS else "")
            entry = (noun, note.key.partition("/")[0])
            if noun:
                self._recent.append(entry)
                self._count += 1
        if self._count != before:
            self._told.set()

    async def follow(self, last_id: str) -> AsyncIterator[tuple[str, Changed | None]]:
        """Yield ids with what changed since the one before; None means that anything may have."""
        known, place = self._place_of(last_id), self._count
        yield self._id(), None if known is None else self._since(known)
        while True:
            await self._news(place)
            await asyncio.sleep(self._gather_s)
            found, place = self._since(place), self._count
            yield self._id(), found

    async def _news(self, place: int) -> None:
        while self._count == place:
            self._told.clear()
            await self._told.wait()

    def _id(self) -> str:
        return f"{self._life}-{self._count}"

    def _place_of(self, last_id: str) -> int | None:
        """Return how many changes somebody knows, or None where nobody can say what was missed."""
        life, _, count = last_id.partition("-")
        if life != self._life or not (count.isascii() and count.isdecimal()):
            return None
        place = int(count)
        return place if self._count - len(self._recent) <= place <= self._count else None

    def _since(self, place: int) -> Changed | None:
        missed = self._count - place
        if missed > len(self._recent):
            return None
        found: dict[str, dict[str, None]] = {}
        for noun, key in list(self._recent)[len(self._recent) - missed :]:
            found.setdefault(noun, {})[key] = None
        if any(len(keys) > _MOST_IDS for keys in found.values()):
            return None
        return Changed(
            experiments=tuple(found.get(_EXPERIMENTS, ())),
            agents=tuple(found.get(_AGENTS, ())),
            topics=tuple(sorted(found.keys() & _TOPICS)),
        )
