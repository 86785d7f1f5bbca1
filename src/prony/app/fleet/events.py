"""Act on what was committed, and tell those who watch an experiment or the whole fleet.

The feed of the whole fleet tells which nouns changed, not how they stand now. Who was cut off comes back with the id
of the last thing heard, and is told what followed; where that is too long ago, or was another server's, it is told to
look at everything anew.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from prony.app.fleet.context import FleetContext
from prony.app.fleet.state import FleetState
from prony.app.fleet.wait_reasons import show_jobs
from prony.errors import NotFoundError, PronyError
from prony.model.event import Changed
from prony.model.queue import ExperimentView, QueuedJob
from prony.model.states import OVER
from prony.store import job_view, lot_rows, queue
from prony.store.database import Connection, Row
from prony.store.experiments import view_of
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


# A watcher that does not read is cut off here rather than remembered for ever; one who comes back sees it all again.
_MOST_NOTICES = 2000
# What a part of the fleet does when something of a topic was committed; it is given the note's key.
Reaction = Callable[[str], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class ChangeNotice:
    """One thing that a watcher is told: an event's name and its JSON; by its id, one who was cut off goes on."""

    event: str
    data: str
    id: str = ""


class FleetEvents:
    """Tell those who watch, and have the parts of the fleet do what follows from what was committed."""

    def __init__(self, context: FleetContext, state: FleetState) -> None:
        self._context = context
        self._state = state
        self._reactions: dict[str, Reaction] = {}
        self._feed = Feed()
        self.watchers: dict[str, set[asyncio.Queue[ChangeNotice | None]]] = defaultdict(set)
        self._changed: dict[str, set[str]] = {}  # experiment -> jobs of which its watchers are still to be told

    # Watching

    async def watch(self, experiment_id: str) -> AsyncIterator[ChangeNotice]:
        """Yield how the experiment stands, and then every change, until it has ended.

        Who does not keep up is cut off, and may come back for how it stands then.
        """
        line: asyncio.Queue[ChangeNotice | None] = asyncio.Queue()
        self.watchers[experiment_id].add(line)
        try:
            view, jobs = await self._context.read(lambda connection: self._snapshot(connection, experiment_id))
            listed = [job.model_dump(mode="json") for job in jobs]
            yield ChangeNotice("snapshot", json.dumps({"experiment": view.model_dump(mode="json"), "jobs": listed}))
            if view.experiment.state in OVER:
                return
            while (notice := await line.get()) is not None:
                yield notice
        finally:
            self._leave(experiment_id, line)

    async def follow(self, last_id: str = "") -> AsyncIterator[ChangeNotice]:
        """Yield what changes anywhere, without end; first what somebody missed who had heard `last_id`."""
        async for place, changed in self._feed.follow(last_id):
            yield (
                ChangeNotice("anew", "{}", place)
                if changed is None
                else ChangeNotice("changed", changed.model_dump_json(), place)
            )

    def _snapshot(self, connection: Connection, experiment_id: str) -> tuple[ExperimentView, list[QueuedJob]]:
        view = view_of(connection, experiment_id)
        rows = queue.page(connection, queue.JobFilter(experiment=experiment_id))
        shown = self._show(rows) or list(job_view.jobs_of(connection, queue.JobFilter(experiment=experiment_id)))
        return view, shown[::-1]

    def _show(self, rows: Sequence[Row[Any]]) -> list[QueuedJob]:
        return show_jobs(self._state, rows, self._context.clock.now())

    # Telling

    def publish(self, experiment_id: str, notice: ChangeNotice | None) -> None:
        """Tell everyone who watches; None is the end."""
        for line in tuple(self.watchers.get(experiment_id, ())):
            is_full = line.qsize() >= _MOST_NOTICES
            if notice is None or is_full:
                self._leave(experiment_id, line)
            line.put_nowait(None if is_full else notice)

    def publish_end(self) -> None:
        """Tell everyone who watches anything that no more comes."""
        for experiment_id in list(self.watchers):
            self.publish(experiment_id, None)

    def _leave(self, experiment_id: str, line: asyncio.Queue[ChangeNotice | None]) -> None:
        lines = self.watchers.get(experiment_id, set())
        lines.discard(line)
        if not lines:
            self.watchers.pop(experiment_id, None)

    async def _tell_jobs(self, experiment_id: str) -> None:
        """Tell watchers, one look after the other: two at once might tell the older last."""
        try:
            while job_ids := self._changed[experiment_id]:
                self._changed[experiment_id] = set()
                await self._look_at_jobs(experiment_id, job_ids)
        except PronyError:  # what they missed nobody knows: they are to ask anew
            self.publish(experiment_id, None)
            raise
        finally:
            del self._changed[experiment_id]

    async def _look_at_jobs(self, experiment_id: str, job_ids: set[str]) -> None:
        """Tell those who watch how these jobs, and the experiment, stand now."""

        def ask(connection: Connection) -> tuple[ExperimentView, list[QueuedJob]]:
            # One that is not there went when the experiment got others.
            found = [queue.find_job(connection, one) for one in sorted(job_ids) if one]
            return view_of(connection, experiment_id), self._show([row for row in found if row is not None])

        try:
            view, jobs = await self._context.read(ask)
        except NotFoundError:  # deleted meanwhile
            self.publish(experiment_id, None)
            return
        for job in jobs:
            self.publish(experiment_id, ChangeNotice("job", job.model_dump_json()))
        over = view.experiment.state in OVER
        if over or "" in job_ids:
            self.publish(experiment_id, ChangeNotice("experiment", view.model_dump_json()))
        if over:
            self.publish(experiment_id, None)

    # Acting on what was committed

    def on(self, topic: str, reaction: Reaction) -> None:
        """Have something done whenever a note of a topic is heard."""
        self._reactions[topic] = reaction

    def hear(self, notes: Sequence[ChangeNote]) -> None:
        """Act on what was committed, here or by another server."""
        self._feed.hear(notes)
        jobs: dict[str, set[str]] = defaultdict(set)
        for note in notes:
            if note.topic == "job":
                experiment_id, _, job_id = note.key.partition("/")
                jobs[experiment_id].add(job_id)
            else:
                self._act_on(note)
        for experiment_id, job_ids in jobs.items():
            if experiment_id in self.watchers:
                is_busy = experiment_id in self._changed
                self._changed.setdefault(experiment_id, set()).update(job_ids)
                if not is_busy:
                    self._context.spawn(self._tell_jobs(experiment_id))

    def _act_on(self, note: ChangeNote) -> None:
        if note.topic in self._reactions:
            self._context.spawn(self._reactions[note.topic](note.key))
            return
        state = self._state
        match note.topic:
            case "lot":
                self._offer(note.key, note.count)
            case "later":
                asyncio.get_running_loop().call_later(note.count / 1000, self.hear, [ChangeNote("lot", note.key)])
            case "freed":
                state.release(note.key)
                state.unwanted.discard(note.key)
                state.renewed.pop(note.key, None)
                state.repeats.pop(note.key, None)
            case "unwanted":
                state.unwanted.add(note.key)
            case "anew":
                state.missed_notes = True
            case "priority":
                state.prioritise(note.key, note.count)
            case "progress":
                experiment_id, _, data = note.key.partition("/")
                self.publish(experiment_id, ChangeNotice("progress", data))

    def _offer(self, lot_id: str, count: int) -> None:
        coming = self._state.coming.get(lot_id)
        if coming is not None:
            self._state.offer(coming, count)
        elif not self._state.again(lot_id, count):
            self._context.spawn(self._load_lot(lot_id, count))

    async def _load_lot(self, lot_id: str, count: int) -> None:
        found = await self._context.read(lambda connection: lot_rows.by_id(connection, lot_id))
        if found is not None:
            self._state.offer(found, count)
