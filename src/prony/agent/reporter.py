"""Report a running job's events and log to the server, in batches when there are many.

The log of one attempt is kept in a file, from which any part can be sent again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from prony.agent.logs import AgentLog
from prony.agent.server_client import Refused
from prony.agent.spool import Work
from prony.client.wire import delays
from prony.errors import TransportError
from prony.model.event import Event
from prony.model.lease import Progress
from prony.model.target import PlacementNote
from prony.ports.agent_link import ServerLink

# A server takes 256 Ki characters in one call.
MOST_CHARACTERS = 64 * 1024
_MOST_OF_REPETITION = 32 * 1024
# Then it only grows by what no longer matters, and fills the disk.
_MOST_BYTES = 32 * 2**20


class RunnerLog:
    """Lines of one attempt, in the order in which they came. Offsets count bytes of UTF-8."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._path = work.log
        self._stderr_at = 0
        self._size = 0

    def event(self, event: Event) -> None:
        """Note an event, and after a repetition what the engine printed in it."""
        self._line(_format_event(event))
        if event.kind == "repetition" and event.state:
            printed = self._work.folder / "logs" / f"repetition-{event.done - 1:04d}.log"
            self._append(_tail(printed, _MOST_OF_REPETITION))

    def say(self, text: str) -> None:
        self._line(text)

    def gather(self) -> None:
        """Take over what the runner wrote to its standard error since the last time."""
        try:
            with self._work.stderr.open("rb") as file:
                file.seek(self._stderr_at)
                fresh = file.read(_MOST_BYTES)
        except OSError:
            return
        self._stderr_at += len(fresh)
        self._append(fresh.decode(errors="replace"))

    def piece(self, offset: int) -> str:
        """Return the text from an offset on, as much as goes into one call."""
        try:
            with self._path.open("rb") as file:
                file.seek(offset)
                block = file.read(MOST_CHARACTERS)
        except OSError:
            return ""
        return block.decode(errors="ignore")  # a letter that was cut in two comes whole with the next piece

    def _line(self, text: str) -> None:
        now = datetime.now(UTC).strftime("%H:%M:%S.%f")[:-3]
        self._append(f"{now} {text}\n")

    def _append(self, text: str) -> None:
        if not text or self._size > _MOST_BYTES:
            return
        block = text.encode(errors="replace")
        try:
            with self._path.open("ab") as file:
                file.write(block)
        except OSError:  # the disk is full: whoever keeps the result will say so
            return
        self._size += len(block)


def _format_event(event: Event) -> str:
    count = f" {event.done}/{event.total}" if event.total else ""
    return " ".join(f"{event.kind}{count} {event.phase} {event.state} {event.message}".split())


def _tail(path: Path, most: int) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - most))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


BATCH_S = 0.1
_LOG_S = 1.0
_MOST_EVENTS = 500
# While the server is away the oldest are forgotten; the log, which is a file, tells all.
_MOST_REMEMBERED = 5000


class Reporter:
    """Tells the server how one job gets on. `on_cancel` is called with True where the lease is not ours any more."""

    def __init__(
        self, link: ServerLink, lease_id: str, journal: RunnerLog, *, on_cancel: Callable[[bool], None], log: AgentLog
    ) -> None:
        self._link = link
        self._lease_id = lease_id
        self._journal = journal
        self._on_cancel = on_cancel
        self._log = log
        self._events: deque[Event] = deque(maxlen=_MOST_REMEMBERED)
        self._offset = 0
        self._placed: PlacementNote | None = None
        self._placement: PlacementNote | None = None  # not told yet
        self._something = asyncio.Event()

    def event(self, event: Event) -> None:
        self._journal.event(event)
        self._events.append(event)
        self._something.set()

    def say(self, text: str) -> None:
        """Add a line to the job's log."""
        self._journal.say(text)
        self._something.set()

    def place(self, note: PlacementNote) -> None:
        """Tell where the job is at a target and how it fares there; only the newest counts."""
        if note != self._placed:
            self._placed = self._placement = note
            self._journal.say(f"{note.phase} at {note.target} {note.reason}".strip())
            self._something.set()

    async def run(self) -> None:
        """Report for as long as this is not cancelled; a server that is away hears all of it later."""
        pauses = delays(BATCH_S, 10.0)
        while True:
            # Not wait_for, which in Python 3.11 forgets to be cancelled where the event comes in the same instant.
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOG_S):  # the runner's last words come without an event
                    await self._something.wait()
            self._something.clear()
            if await self._post():
                pauses = delays(BATCH_S, 10.0)
                await asyncio.sleep(BATCH_S)
            else:
                self._something.set()
                await asyncio.sleep(next(pauses))

    async def flush(self, most_s: float) -> None:
        """Send what is left, as far as the server takes it in this time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                while self._events or self._journal.piece(self._offset):
                    if not await self._post():
                        return

    async def _post(self) -> bool:
        """Send the next batch, if there is one; return False where it is to be tried again."""
        self._journal.gather()
        events = tuple(self._events)[:_MOST_EVENTS]
        text, placement = self._journal.piece(self._offset), self._placement
        if not events and not text and placement is None:
            return True
        told = Progress(events=events, log_offset=self._offset, log=text, placement=placement)
        try:
            answer = await self._link.progress(self._lease_id, told)
        except Refused as exc:
            return self._handle_refusal(exc)
        except TransportError as exc:
            self._log.debug("could not report progress", reason=exc.message)
            return False
        for event in events:
            if self._events and self._events[0] is event:  # it may have been forgotten meanwhile
                self._events.popleft()
        self._offset += len(text.encode())
        if self._placement is placement:
            self._placement = None
        if self._events or self._journal.piece(self._offset):
            self._something.set()
        if answer.cancel:
            self._on_cancel(False)
        return True

    def _handle_refusal(self, refused: Refused) -> bool:
        if not refused.is_final:
            self._log.debug(
                "the server rejected the progress report", reason=refused.error.message, status=refused.status
            )
            return False
        self._events.clear()
        if refused.status in (404, 409, 410):
            self._on_cancel(True)
        else:
            self._log.warning(
                "the server rejected the progress report", reason=refused.error.message, status=refused.status
            )
        return True
