"""What every part of a fleet needs: the store, its one writer, the clock, the settings, and tasks that end with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from prony.app.fleet.read_recipe import ReadOrder, ReadRecipe
from prony.app.fleet.reading import Readers
from prony.app.fleet.unpack_bundle import BundleOpeners
from prony.app.fleet.unpack_result import Openers
from prony.app.tracing import open_tracer
from prony.errors import PronyError, StoreError
from prony.ports.clock import Clock, SystemClock
from prony.store.database import Connection, reading, was_in_the_way
from prony.store.home import Home, safe_id
from prony.store.server_notes import Listener, send_notes
from prony.store.store import Store
from prony.store.writer import ChangeNote, Operation, Writer

T = TypeVar("T")
_LAST_WORK_S = 2.0  # a server ends within 10 s of its signal, and requests have 5 s of them


@dataclass(frozen=True)
class FleetSettings:
    """`ttl_s`: how long a lease lasts without a sign of life. `sweep_s`: how often a server looks around.

    `openers`: how many processes open results, `readers` read recipes; 0 is a thread of the server's own. What happens
    within `alarm_window_s` an alarm tells as one message; `url` is where people find this server.
    `confirm_runs_per_day`: so many runs a day decide what histories suspect; 0 is none.
    `prometheus` and `grafana` are where people find the server's figures; `otlp_url` is where its spans go, and
    `export_to` where ended experiments are sent.
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
    otlp_url: str = ""
    export_to: tuple[str, ...] = ()


class FleetContext:
    """Passed to every part of a fleet; it decides nothing."""

    def __init__(self, store: Store, settings: FleetSettings) -> None:
        self.store = store
        self.settings = settings
        self.clock: Clock = SystemClock()
        self.time: Callable[[], float] = time.monotonic
        self.engine = store.engine
        self.tracer = open_tracer(settings.otlp_url, "prony-server")
        self.openers = Openers(settings.openers)
        self.bundle_openers = BundleOpeners(min(1, settings.openers))
        self.readers = Readers(settings.readers)
        self.checkers = Readers(min(1, settings.readers))
        self.tasks: set[asyncio.Task[Any]] = set()
        self.hooks: list[Callable[[str, dict[str, object]], None]] = []
        self.listener: Listener | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hear: Callable[[Sequence[ChangeNote]], None] = lambda _: None
        self.writer = Writer(
            self.engine,
            before_commit=self._send if self.is_shared else lambda *_: None,
            after_commit=self._pass_on,
        )

    @property
    def home(self) -> Home:
        return self.store.home

    @property
    def is_shared(self) -> bool:
        """May other servers use the same database?"""
        return self.engine.dialect.name == "postgresql"

    def now(self) -> float:
        """Seconds by which lives of leases and patience are counted: no clock that somebody sets."""
        return self.time()

    # The database

    async def write(self, operation: Operation[T]) -> T:
        """Have something done in a transaction and return when it is on the disk."""
        try:
            return await asyncio.wrap_future(self.writer.submit(operation))
        except StoreError as exc:
            if not was_in_the_way(exc):
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

    # Tasks

    async def through(self, work: Coroutine[Any, Any, T]) -> T:
        """Carry something to its end, even where whoever waits for it goes away."""
        return await asyncio.shield(self.begin(work))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something that nobody waits for; where the database is away, the next round makes up for it."""
        return self.begin(self._run_logged(work))

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task that the fleet waits for when it stops."""
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
            self.hook("background_task_failed", message=exc.message)

    def hook(self, happened: str, **facts: object) -> None:
        """Tell whoever counts things."""
        for listen in self.hooks:
            listen(happened, facts)

    # Notes of what was committed

    def start(self, hear: Callable[[Sequence[ChangeNote]], None]) -> None:
        """Have `hear` called in this loop with what is committed from now on, here or by another server."""
        self._loop = asyncio.get_running_loop()
        self._hear = hear
        if self.is_shared:
            self.listen()

    def listen(self) -> None:
        """Hear what other servers commit."""
        self.listener = Listener(self.engine, self._pass_on)

    def _send(self, connection: Connection, notes: Sequence[ChangeNote]) -> None:
        if self.listener is not None and not self.listener.is_alone:
            send_notes(connection, self.listener.sender, notes)

    def _pass_on(self, notes: Sequence[ChangeNote]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._hear, list(notes))

    async def close(self) -> None:
        """Wait a little for what is under way, then end every process and thread; the store is closed last."""
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=_LAST_WORK_S)
        pools = (self.openers, self.bundle_openers, self.readers, self.checkers)
        await asyncio.gather(*(pool.close() for pool in pools))
        if self.listener is not None:
            await asyncio.to_thread(self.listener.close)
        await asyncio.to_thread(self.writer.close)
        self.store.close()
        await asyncio.to_thread(self.tracer.close)

    # Logs

    def log_folder(self, experiment_id: str) -> Path:
        return self.home.root / "logs" / safe_id(experiment_id)

    def log_path(self, experiment_id: str, job_id: str, attempt: int) -> Path:
        return self.log_folder(experiment_id) / f"{safe_id(job_id)}.{attempt}.log"

    def live_path(self, experiment_id: str, job_id: str, attempt: int) -> Path:
        """Return where the seconds of a running load are kept."""
        return self.log_folder(experiment_id) / f"{safe_id(job_id)}.{attempt}.load.jsonl"
