"""Upload packed results to the server, oldest first, resuming interrupted uploads.

Pauses between tries that fail grow.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from prony.agent.logs import AgentLog
from prony.agent.metrics import AgentMetrics
from prony.agent.server_client import Refused
from prony.agent.spool import Meta, Spool, Work
from prony.client.wire import delays
from prony.errors import PronyError, StoreError, TransportError
from prony.model.lease import FinishAnswer
from prony.ports.agent_link import ServerLink
from prony.ports.tracing import NoTracer, SpanFacts, Tracer
from prony.store.result_tar import measure_tar


class Backoff:
    """How long to wait before the next try: longer after each failure, nothing after a success.

    `delays` makes the pauses; they are scattered, so that many agents do not come back in the same instant."""

    def __init__(self, delays: Callable[[], Iterator[float]]) -> None:
        self._delays = delays
        self._pauses = delays()
        self._due_s = 0.0

    @property
    def wait_s(self) -> float:
        """Seconds until the next try; 0 when it may be made now."""
        return max(0.0, self._due_s - time.monotonic())

    def fail(self, at_least_s: float = 0.0) -> None:
        """Note a failure; `at_least_s` is the pause that the other side asks for."""
        self._due_s = time.monotonic() + max(at_least_s, next(self._pauses))

    def reset(self) -> None:
        """Note a success: the next failure begins with the shortest pause again."""
        self._pauses = self._delays()
        self._due_s = 0.0


SMALL_BYTES = 2**20
PIECE_BYTES = 4 * 2**20
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
_MOST_REFUSALS = 5


class Uploader:
    """Sends what lies in the spool. One at a time: who waits for `settled` finds it done, or the server away."""

    def __init__(
        self, link: ServerLink, spool: Spool, *, metrics: AgentMetrics, log: AgentLog, tracer: Tracer | None = None
    ) -> None:
        self._link = link
        self._tracer = tracer or NoTracer()
        self._spool = spool
        self._metrics = metrics
        self._log = log
        self._offered = asyncio.Event()
        self._turn = asyncio.Lock()
        self.settled = asyncio.Event()
        self.settled.set()
        self.unsent: dict[str, Meta] = {}  # by lease
        self._refusals: Counter[str] = Counter()
        # Where the server is in trouble nothing is sent before its time, however much comes in; where it does not take
        # one result, the others are sent meanwhile.
        self._server = _backoff()
        self._results: dict[str, Backoff] = {}  # by lease
        self._is_server_full = False

    @property
    def waiting_lease_ids(self) -> tuple[str, ...]:
        """Return the leases whose results wait here: the server need not lend them again."""
        return tuple(lease_id for lease_id, meta in self.unsent.items() if not meta.late)

    @property
    def answered_for(self) -> tuple[str, ...]:
        """Return the leases that are to be renewed until their results are sent.

        Not those that are over, nor those whose results the server keeps refusing: then the job is better run again.
        """
        return tuple(
            lease_id
            for lease_id, meta in self.unsent.items()
            if not meta.late and self._refusals[lease_id] < _MOST_REFUSALS
        )

    async def load(self) -> None:
        """See what an earlier life left to be sent."""
        for _, meta in await asyncio.to_thread(self._spool.waiting):
            self.offer(meta)

    def offer(self, meta: Meta) -> None:
        """Have a packed result sent some time."""
        self._note(meta)
        self.settled.clear()
        self._offered.set()

    async def deliver(self, work: Work, meta: Meta, *, ask_next: bool) -> FinishAnswer | None:
        """Send a result now if nothing older waits; what is not accepted at once is sent some time."""
        if self.unsent or self._server.wait_s > 0:
            self.offer(meta)
            return None
        self._note(meta)
        try:
            async with self._turn:
                answer = await self._send(work, meta, ask_next=ask_next)
        except (TransportError, StoreError, Refused) as exc:
            self._fail(meta, exc)
            self.offer(meta)
            return None
        self._note_success()
        return answer

    async def run(self) -> None:
        """Send what waits for as long as this is not cancelled."""
        while True:
            if not self.unsent:
                self.settled.set()
                self._offered.clear()
                await self._offered.wait()
            if self._server.wait_s > 0:
                self._let_go()
                await asyncio.sleep(self._server.wait_s)  # a new result does not shorten it
            self._offered.clear()
            pause_s = await self.send_waiting()
            if pause_s is not None and self._server.wait_s == 0:
                self._let_go()
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await self._offered.wait()

    async def send_waiting(self, *, at_once: bool = False) -> float | None:
        """Send all that waits, oldest first; return None, or how long to wait before the rest is tried again.

        One that is not taken now does not keep the others from being sent; a server in trouble does. `at_once`: pauses
        that are not over do not count.
        """
        async with self._turn:
            if self._server.wait_s > 0 and not at_once:  # somebody else has just tried
                return self._server.wait_s
            pauses: list[float] = []
            waiting = await asyncio.to_thread(self._spool.waiting)
            if not waiting:
                self.unsent.clear()
                self._count()
            for work, meta in waiting:
                self._note(meta)
                own = self._results.get(meta.lease_id)
                if own is not None and own.wait_s > 0 and not at_once:
                    pauses.append(own.wait_s)
                    continue
                try:
                    await self._send(work, meta, ask_next=False)
                except (Refused, TransportError, StoreError) as exc:
                    pauses.append(self._fail(meta, exc))
                    if self._server.wait_s > 0:
                        break
                else:
                    self._note_success()
            return min(pauses, default=None)

    # Inside

    def _let_go(self) -> None:
        """Let whoever waits for `settled` go on: the server is away, or does not take what waits.

        Not where it has no room: a job more would be a result more that it cannot take."""
        if not self._is_server_full:
            self.settled.set()

    def _fail(self, meta: Meta, exc: Refused | TransportError | StoreError) -> float:
        """Note that a result was not taken; return the pause before the next try."""
        error = exc.error if isinstance(exc, Refused) else exc
        self._log_failure(meta, error)
        at_least_s = (exc.retry_after_s or 0.0) if isinstance(exc, Refused) else 0.0
        if isinstance(exc, Refused) and not exc.is_trouble:
            self._refusals[meta.lease_id] += 1
            backoff = self._results.setdefault(meta.lease_id, _backoff())
        else:
            self._is_server_full = isinstance(exc, Refused) and error.code == "disk_full"
            backoff = self._server
        backoff.fail(at_least_s)
        return backoff.wait_s

    def _note_success(self) -> None:
        self._is_server_full = False
        self._server.reset()

    async def _send(self, work: Work, meta: Meta, *, ask_next: bool) -> FinishAnswer | None:
        """Send one; return the answer, or None where the server refused it for good. Raises where it may go better."""
        try:
            answer = await self._handed_in(work, meta, ask_next=ask_next)
        except OSError as exc:
            hint = "check the disk of the agent, and run the job again"
            error = StoreError(f"cannot read {work.tar}: {exc.strerror}", hint=hint)
            await self._set_aside(work, meta, error, "the result cannot be read from this disk and is set aside")
            return None
        except Refused as exc:
            if not exc.is_final and not await asyncio.to_thread(_is_rotten, work, meta, exc):
                raise
            await self._set_aside(work, meta, exc.error, "the server rejected the result")
            return None
        await asyncio.to_thread(self._spool.remove, work)
        self._done(meta)
        outcome = "accepted" if answer.accepted else "already known"
        self._about(meta).info("result uploaded", outcome=outcome, bytes=meta.size)
        return answer

    async def _handed_in(self, work: Work, meta: Meta, *, ask_next: bool) -> FinishAnswer:
        facts: SpanFacts = {"job": meta.job_id, "attempt": meta.attempt, "bytes": meta.size}
        with self._tracer.span("upload", facts, parent=meta.traceparent):
            content = b""
            if meta.size < SMALL_BYTES:
                content = await asyncio.to_thread(work.tar.read_bytes)
            else:
                await self._upload(work, meta)
            return await self._link.finish(meta.lease_id, content, sha256=meta.sha256, ask_next=ask_next)

    async def _upload(self, work: Work, meta: Meta) -> None:
        """Send what the server has not yet, piece by piece."""
        offset = await self._link.upload_offset(meta.lease_id)
        if offset:
            self._about(meta).info("upload continues", offset=offset, bytes=meta.size)
        while offset < meta.size:
            piece = await asyncio.to_thread(_piece, work.tar, offset)
            try:
                offset = await self._link.upload(meta.lease_id, offset, piece)
            except Refused as exc:
                if exc.status != 409:
                    raise
                known = await self._link.upload_offset(meta.lease_id)
                if known == offset:  # it wants just what it was sent: then something else is in conflict
                    raise
                offset = known

    async def _set_aside(self, work: Work, meta: Meta, error: PronyError, told: str) -> None:
        place = await asyncio.to_thread(self._spool.refuse, work, f"{error.code}: {error.message}")
        self._done(meta)
        self._metrics.count("results_refused_total", code=error.code)
        self._about(meta).alarm(told, reason=error.message, kept=str(place))

    def _log_failure(self, meta: Meta, error: PronyError) -> None:
        self._metrics.count("upload_retries_total")
        self._about(meta).warning("result not uploaded yet", reason=error.message, hint=error.hint)

    def _about(self, meta: Meta) -> AgentLog:
        return self._log.bound(job_id=meta.job_id, experiment_id=meta.experiment_id, attempt=meta.attempt)

    def _note(self, meta: Meta) -> None:
        self.unsent[meta.lease_id] = meta
        self._count()

    def _done(self, meta: Meta) -> None:
        self.unsent.pop(meta.lease_id, None)
        self._refusals.pop(meta.lease_id, None)
        self._results.pop(meta.lease_id, None)
        self._count()

    def _count(self) -> None:
        self._metrics.set("spool_results", len(self.unsent))
        self._metrics.set("spool_bytes", sum(meta.size for meta in self.unsent.values()))


def _backoff() -> Backoff:
    return Backoff(lambda: delays(FIRST_PAUSE_S, LONGEST_PAUSE_S))


def _piece(path: Path, offset: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(PIECE_BYTES)


def _is_rotten(work: Work, meta: Meta, refused: Refused) -> bool:
    """Was what arrived damaged not on its way, but on this disk?"""
    return refused.error.code == "checksum_mismatch" and measure_tar(work.tar).sha256 != meta.sha256
