"""What every use case of a fleet stands on: the store, the one writer, what is in mind, and who is told of changes."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from prony.app.access import Access
from prony.app.fleet.alarm_engine import AlarmEngine
from prony.app.fleet.alarm_events import experiment_ended
from prony.app.fleet.feed import Feed
from prony.app.fleet.reading import Readers
from prony.app.fleet.rendezvous import Meetings
from prony.app.fleet.state import FleetState, KnownAgent
from prony.app.fleet.submission import ReadOrder, ReadRecipe
from prony.app.fleet.unpack_result import Openers
from prony.app.fleet.wire import Listener, send_notes
from prony.errors import PronyError, StoreError
from prony.model.agent import AgentState, Capabilities
from prony.model.event import Live
from prony.model.experiment import ExperimentState
from prony.model.queue import Lot
from prony.model.states import outcome
from prony.ports.clock import Clock, SystemClock
from prony.store import agents as agent_rows
from prony.store import alarms as alarm_rows
from prony.store import confirmations, lot_rows, queue
from prony.store.database import reading
from prony.store.home import Home, safe_id
from prony.store.store import Store
from prony.store.writer import ChangeNote, Operation, Transaction, Writer

if TYPE_CHECKING:
    from sqlalchemy import Row

T = TypeVar("T")
# A watcher that does not read is cut off here rather than remembered for ever; one who comes back sees it all again.
_MOST_NOTICES = 2000
# What PostgreSQL says when another server was in the way: a deadlock, an order that cannot be, a key that was free.
_IN_THE_WAY = ("40P01", "40001", "23505")


@dataclass(frozen=True)
class FleetSettings:
    """`ttl_s`: how long a lease lasts without a sign of life. `sweep_s`: how often a server looks around.

    `openers`: how many processes open results, `readers` read recipes; 0 is a thread of the server's own. What happens
    within `alarm_window_s` an alarm tells as one message; `url` is where people find this server.
    `confirm_runs_per_day`: so many runs a day decide what histories suspect; 0 is none.
    `prometheus` and `grafana` are where people find the server's figures.
    """

    ttl_s: float = 30.0
    sweep_s: float = 1.0
    reconcile_s: float = 5.0
    max_upload_bytes: int = 8 * 2**30
    scripts_quota_bytes: int = 20 * 2**30
    asks_tokens: bool = False
    openers: int = 0
    readers: int = 0
    alarm_window_s: float = 10.0
    confirm_runs_per_day: int = 100
    url: str = ""
    prometheus: str = ""
    grafana: str = ""


@dataclass(frozen=True)
class ChangeNotice:
    """One thing that a watcher is told: an event's name and its JSON; by its id, one who was cut off goes on."""

    event: str
    data: str
    id: str = ""


@dataclass(frozen=True)
class LogPiece:
    text: bytes
    next_offset: int
    ended: bool


class FleetContext:
    """The common ground of the use cases; see `Fleet`."""

    def __init__(self, store: Store, settings: FleetSettings) -> None:
        self.store = store
        self.settings = settings
        self.clock: Clock = SystemClock()
        self.time: Callable[[], float] = time.monotonic
        self.floor = FleetState()
        self.meetings = Meetings()
        self.lives: dict[str, dict[str, Live]] = {}  # load that several send -> how it goes for each
        self.settling: set[str] = set()  # loads that are being put together
        self.openers = Openers(settings.openers)
        self.readers = Readers(settings.readers)
        self.checkers = Readers(min(1, settings.readers))
        self.engine = store.engine
        self.access = Access(self.engine, self.clock)
        self.siren = AlarmEngine(settings.alarm_window_s)
        self.ended: set[str] = set()  # experiments whose gates are still to be told of
        self.feed = Feed()
        self.watchers: dict[str, set[asyncio.Queue[ChangeNotice | None]]] = defaultdict(set)
        self.seen: dict[str, float] = {}  # agent -> monotonic time of its last sign of life
        self.renewed: dict[str, float] = {}  # lease -> the same
        self.alive: set[str] = set()  # agents seen since the last round
        self.last_round = 0.0
        self.away: dict[str, str] = {}  # change that is to be confirmed -> the agent that it waits for
        self.unwanted: set[str] = set()  # leases whose jobs are to be stopped
        self.coming: dict[str, Lot] = {}  # lots that are being stored
        self.printing = asyncio.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.listener: Listener | None = None
        self.is_stopping = False
        self.missed_notes = False  # may other servers have told something that was not heard?
        self.tasks: set[asyncio.Task[Any]] = set()
        self.changed: dict[str, set[str]] = {}  # experiment -> jobs of which its watchers are still to be told
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

    def now(self) -> float:
        """Seconds by which lives of leases and patience are counted: no clock that somebody sets."""
        return self.time()

    async def write(self, operation: Operation[T]) -> T:
        """Have something done in a transaction and return when it is on the disk."""
        try:
            return await asyncio.wrap_future(self.writer.submit(operation))
        except StoreError as exc:
            if not _was_in_the_way(exc):
                raise
        return await asyncio.wrap_future(self.writer.submit(operation))

    async def read(self, question: Callable[[Connection], T]) -> T:
        def ask() -> T:
            with reading(self.engine) as connection:
                return question(connection)

        return await asyncio.to_thread(ask)

    async def read_recipe(self, order: ReadOrder, *, is_check: bool = False) -> ReadRecipe:
        """Read a recipe within limits of time and memory. Checks have a process of their own: many may ask for them."""
        return await (self.checkers if is_check else self.readers).do(order)

    async def through(self, work: Coroutine[Any, Any, T]) -> T:
        """Carry something to its end, even where whoever waits for it goes away."""
        return await asyncio.shield(self._begin(work))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that nobody waits for; where the database is away, the next round makes up for it."""
        self._begin(self._run_logged(work))

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._forget_task)
        return task

    def _forget_task(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled():
            task.exception()  # seen: whoever waited was told, or has gone

    async def _run_logged(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except PronyError as exc:
            self.hook("note_failed", message=exc.message)

    # Telling

    def hook(self, happened: str, **facts: object) -> None:
        """Tell whoever counts things."""
        for listen in self.hooks:
            listen(happened, facts)

    def _send(self, connection: Connection, notes: Sequence[ChangeNote]) -> None:
        if self.listener is not None and not self.listener.is_alone:
            send_notes(connection, self.listener.sender, notes)

    def _told_by_writer(self, notes: Sequence[ChangeNote]) -> None:
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.hear, list(notes))

    def hear(self, notes: Sequence[ChangeNote]) -> None:
        """Act on what was committed, here or by another server."""
        self.feed.hear(notes)
        jobs: dict[str, set[str]] = defaultdict(set)
        for note in notes:
            if note.topic == "job":
                experiment_id, _, job_id = note.key.partition("/")
                jobs[experiment_id].add(job_id)
            else:
                self._act_on(note)
        for experiment_id, job_ids in jobs.items():
            if experiment_id in self.watchers:
                is_busy = experiment_id in self.changed
                self.changed.setdefault(experiment_id, set()).update(job_ids)
                if not is_busy:
                    self.spawn(self._show(experiment_id))

    async def _show(self, experiment_id: str) -> None:
        """Tell watchers, one look after the other: two at once might tell the older last."""
        try:
            while job_ids := self.changed[experiment_id]:
                self.changed[experiment_id] = set()
                await self.show_jobs(experiment_id, job_ids)
        except PronyError:  # what they missed nobody knows: they are to ask anew
            self.publish(experiment_id, None)
            raise
        finally:
            del self.changed[experiment_id]

    def _act_on(self, note: ChangeNote) -> None:
        follows = {"agent": self.load_card, "gathered": self.settle_gang, "alarms": self.load_alarms}
        if note.topic in follows:
            self.spawn(follows[note.topic](note.key))
            return
        match note.topic:
            case "lot":
                self._offer(note.key, note.count)
            case "later":
                asyncio.get_running_loop().call_later(note.count / 1000, self.hear, [ChangeNote("lot", note.key)])
            case "freed":
                self.floor.release(note.key)
                self.unwanted.discard(note.key)
                self.renewed.pop(note.key, None)
            case "unwanted":
                self.unwanted.add(note.key)
            case "anew":
                self.missed_notes = True
            case "priority":
                self.floor.prioritise(note.key, note.count)
            case "progress":
                experiment_id, _, data = note.key.partition("/")
                self.publish(experiment_id, ChangeNotice("progress", data))

    def publish(self, experiment_id: str, notice: ChangeNotice | None) -> None:
        """Tell everyone who watches; None is the end."""
        for line in tuple(self.watchers.get(experiment_id, ())):
            is_full = line.qsize() >= _MOST_NOTICES
            if notice is None or is_full:
                self.leave(experiment_id, line)
            line.put_nowait(None if is_full else notice)

    def leave(self, experiment_id: str, line: asyncio.Queue[ChangeNotice | None]) -> None:
        """Tell one who watches nothing more."""
        lines = self.watchers.get(experiment_id, set())
        lines.discard(line)
        if not lines:
            self.watchers.pop(experiment_id, None)

    async def show_jobs(self, experiment_id: str, job_ids: set[str]) -> None:
        """Tell those who watch how these jobs stand now; overridden where views are made."""
        raise NotImplementedError

    async def settle_gang(self, job_id: str) -> None:
        """Put together what the parts of a load brought; overridden where results are taken in."""
        raise NotImplementedError

    @contextmanager
    def about_to_come(self, lots: Iterable[Lot]) -> Iterator[None]:
        """Have lots in mind while they are stored, so that they are offered as soon as that is committed."""
        fresh = {lot.id: lot for lot in lots}
        self.coming |= fresh
        try:
            yield
        finally:
            for lot_id in fresh:
                self.coming.pop(lot_id, None)

    def _offer(self, lot_id: str, count: int) -> None:
        if lot_id in self.coming:
            self.floor.offer(self.coming[lot_id], count)
        elif not self.floor.again(lot_id, count):
            self.spawn(self._load_lot(lot_id, count))

    async def _load_lot(self, lot_id: str, count: int) -> None:
        found = await self.read(lambda connection: lot_rows.by_id(connection, lot_id))
        if found is not None:
            self.floor.offer(found, count)

    # Agents in mind

    async def load_card(self, agent_id: str) -> None:
        await self.load_cards([agent_id])

    async def load_cards(self, agent_ids: Sequence[str]) -> None:
        """Have in mind what the database knows of these agents; whoever waits is to look again at what it may do."""
        rows = await self.read(lambda connection: agent_rows.find_agents(connection, agent_ids))
        for row in rows:
            self.keep_card(row)
        for agent_id in set(agent_ids) - {row.id for row in rows}:
            self.floor.forget(agent_id)
        for agent_id in agent_ids:
            self.floor.rouse(agent_id)

    def keep_card(self, row: Row[Any]) -> KnownAgent:
        known = self.floor.cards.get(row.id)
        card = KnownAgent(
            id=row.id,
            name=row.name,
            state=AgentState(row.state),
            device_key=row.device_key,
            incarnation=row.incarnation,
            capabilities=Capabilities.read_json(row.document),
            strikes=row.strikes,
            is_cleaning=known.is_cleaning if known else False,
        )
        self.floor.keep(card)
        return card

    # Alarms in mind

    async def load_alarms(self, _: str = "") -> None:
        self.siren.alarms = await self.read(alarm_rows.every)

    # Experiments

    def close_if_done(self, desk: Transaction, experiment_id: str) -> None:
        """Let an experiment whose last job has ended be what follows from its jobs; a late result may change it again.

        Where two servers end the last two jobs in the same instant neither sees the other's: the next round does.
        """
        if queue.is_open(desk.connection, experiment_id):
            return
        row = queue.lock_experiment(desk.connection, experiment_id)
        if queue.is_open(desk.connection, experiment_id):  # another server has just let one wait again
            return
        counts = queue.counts(desk.connection, [experiment_id])[experiment_id]
        if not counts:  # it was deleted, or is run without a server
            return
        state = outcome(counts)
        was = [before.value for before in ExperimentState if before is not state]
        if queue.set_state(desk.connection, experiment_id, state.value, was=was, ended_at=self.clock.now()):
            desk.tell("job", f"{experiment_id}/")
            # Runs that Prony made for itself are no run of the recipe: they neither begin nor end what people wait for.
            if row is None or confirmations.is_confirming(desk.connection, experiment_id):
                return
            self.ended.add(experiment_id)
            if self.siren.hears("experiment_failed"):
                happening = experiment_ended(row.name, experiment_id, counts, self.clock.now())
                if happening is not None:
                    self.siren.report(desk, happening)

    # Logs

    def log_folder(self, experiment_id: str) -> Path:
        return self.home.root / "logs" / safe_id(experiment_id)

    def log_path(self, experiment_id: str, job_id: str, attempt: int) -> Path:
        return self.log_folder(experiment_id) / f"{safe_id(job_id)}.{attempt}.log"


def _was_in_the_way(error: StoreError) -> bool:
    """Was it undone because of what another server did in the same instant? Then it goes well, or is refused, now."""
    cause = error.__cause__
    return isinstance(cause, DBAPIError) and getattr(cause.orig, "sqlstate", None) in _IN_THE_WAY
