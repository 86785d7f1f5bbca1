"""What every use case of a fleet stands on: the store, the one writer, what is in mind, and who is told of changes."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy import Connection

from prony.app.access import Access
from prony.app.fleet.floor import Card, Floor
from prony.app.fleet.wire import Listener, send_notes
from prony.model.agent import AgentState, Capabilities
from prony.ports.clock import SystemClock
from prony.store import agents as agent_rows
from prony.store import lots, queue
from prony.store.database import reading
from prony.store.home import Home
from prony.store.store import Store
from prony.store.writer import Desk, Note, Operation, Writer

if TYPE_CHECKING:
    from sqlalchemy import Row

T = TypeVar("T")
# A watcher that does not read is cut off here rather than remembered for ever.
_MOST_NOTICES = 2000


@dataclass(frozen=True)
class FleetSettings:
    """`ttl_s`: how long a lease lasts without a sign of life. `sweep_s`: how often a server looks around."""

    ttl_s: float = 30.0
    sweep_s: float = 1.0
    reconcile_s: float = 5.0
    max_upload_bytes: int = 8 * 2**30
    asks_tokens: bool = False


@dataclass(frozen=True)
class Notice:
    """One thing that a watcher is told: an event's name and its JSON."""

    event: str
    data: str


@dataclass(frozen=True)
class LogPiece:
    text: bytes
    next_offset: int
    ended: bool


class Office:
    """The common ground of the use cases; see `Fleet`."""

    def __init__(self, store: Store, settings: FleetSettings) -> None:
        self.store = store
        self.settings = settings
        self.clock = SystemClock()
        self.floor = Floor()
        self.engine = store.engine
        self.access = Access(self.engine, self.clock)
        self.watchers: dict[str, set[asyncio.Queue[Notice | None]]] = defaultdict(set)
        self.seen: dict[str, float] = {}  # agent -> monotonic time of its last sign of life
        self.renewed: dict[str, float] = {}  # lease -> the same
        self.alive: set[str] = set()  # agents seen since the last round
        self.last_round = 0.0
        self.unwanted: set[str] = set()  # leases whose jobs are to be stopped
        self.loop: asyncio.AbstractEventLoop | None = None
        self.listener: Listener | None = None
        self.tasks: set[asyncio.Task[None]] = set()
        self.hooks: list[Callable[[str, dict[str, object]], None]] = []
        self.writer = Writer(
            self.engine,
            before_commit=self._send if self.is_shared else lambda *_: None,
            after_commit=self._told_by_writer,
        )

    @classmethod
    def open(cls, home: Home | None = None, *, url: str = "", settings: FleetSettings | None = None) -> Self:
        return cls(Store.open(home, url=url), settings or FleetSettings())

    @property
    def home(self) -> Home:
        return self.store.home

    @property
    def is_shared(self) -> bool:
        """May other servers use the same database?"""
        return self.engine.dialect.name == "postgresql"

    # Doing

    async def write(self, operation: Operation[T]) -> T:
        """Have something done in a transaction and return when it is on the disk."""
        return await asyncio.wrap_future(self.writer.submit(operation))

    async def read(self, question: Callable[[Connection], T]) -> T:
        def ask() -> T:
            with reading(self.engine) as connection:
                return question(connection)

        return await asyncio.to_thread(ask)

    def spawn(self, work: asyncio.Task[None]) -> None:
        """Keep hold of work that nobody waits for."""
        self.tasks.add(work)
        work.add_done_callback(self.tasks.discard)

    # Telling

    def hook(self, happened: str, **facts: object) -> None:
        """Tell whoever counts things."""
        for listen in self.hooks:
            listen(happened, facts)

    def _send(self, connection: Connection, notes: Sequence[Note]) -> None:
        if self.listener is not None:
            send_notes(connection, self.listener.sender, notes)

    def _told_by_writer(self, notes: Sequence[Note]) -> None:
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.hear, list(notes))

    def hear(self, notes: Sequence[Note]) -> None:
        """Act on what was committed, here or by another server."""
        jobs: dict[str, set[str]] = defaultdict(set)
        for note in notes:
            if note.topic == "job":
                experiment_id, _, job_id = note.key.partition("/")
                jobs[experiment_id].add(job_id)
            else:
                self._act_on(note)
        for experiment_id, job_ids in jobs.items():
            if experiment_id in self.watchers:
                self.spawn(asyncio.ensure_future(self.show_jobs(experiment_id, job_ids)))

    def _act_on(self, note: Note) -> None:
        match note.topic:
            case "lot":
                if not self.floor.again(note.key, note.count):
                    self.spawn(asyncio.ensure_future(self._load_lot(note.key, note.count)))
            case "later":
                asyncio.get_running_loop().call_later(note.count / 1000, self.hear, [Note("lot", note.key)])
            case "agent":
                self.spawn(asyncio.ensure_future(self.load_card(note.key)))
            case "freed":
                self.floor.release(note.key)
                self.unwanted.discard(note.key)
                self.renewed.pop(note.key, None)
            case "unwanted":
                self.unwanted.add(note.key)
            case "priority":
                self.floor.prioritise(note.key, note.count)
            case "progress":
                experiment_id, _, data = note.key.partition("/")
                self.publish(experiment_id, Notice("progress", data))

    def publish(self, experiment_id: str, notice: Notice | None) -> None:
        for line in self.watchers.get(experiment_id, ()):
            if line.qsize() < _MOST_NOTICES:
                line.put_nowait(notice)

    async def show_jobs(self, experiment_id: str, job_ids: set[str]) -> None:
        """Tell those who watch how these jobs stand now; overridden where views are made."""
        raise NotImplementedError

    async def _load_lot(self, lot_id: str, count: int) -> None:
        found = await self.read(lambda connection: lots.by_id(connection, lot_id))
        if found is not None:
            self.floor.offer(found, count)

    # Agents in mind

    async def load_card(self, agent_id: str) -> None:
        def ask(connection: Connection) -> Row[Any] | None:
            return next((row for row in agent_rows.rows(connection, only=agent_id)), None)

        row = await self.read(ask)
        if row is None:
            self.floor.cards.pop(agent_id, None)
            self.floor.rouse(agent_id)
        else:
            self.keep_card(row)

    def keep_card(self, row: Row[Any]) -> Card:
        known = self.floor.cards.get(row.id)
        card = Card(
            id=row.id,
            name=row.name,
            state=AgentState(row.state),
            device_key=row.device_key,
            incarnation=row.incarnation,
            capabilities=Capabilities.read_json(row.document),
            strikes=row.strikes,
            is_cleaning=known.is_cleaning if known else False,
        )
        self.floor.cards[card.id] = card
        return card

    # Experiments

    def close_if_done(self, desk: Desk, experiment_id: str) -> None:
        """End an experiment whose last job has ended.

        Where two servers end the last two jobs in the same instant neither sees the other's: the next round does.
        """
        if queue.is_open(desk.connection, experiment_id):
            return
        from prony.model.states import outcome

        states = queue.counts(desk.connection, [experiment_id])[experiment_id]
        state = outcome(states)
        now = self.clock.now()
        if queue.set_state(desk.connection, experiment_id, state.value, was=("pending", "running"), ended_at=now):
            desk.tell("job", f"{experiment_id}/")

    def log_path(self, experiment_id: str, job_id: str, attempt: int) -> Path:
        from prony.store.home import safe_id

        return self.home.root / "logs" / safe_id(experiment_id) / f"{safe_id(job_id)}.{attempt}.log"
