"""Report a running job's events and log to the server, in batches when there are many.

The log of one attempt is kept in a file, from which any part can be sent again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from prony.agent.logs import AgentLog
from prony.agent.server_client import Refused
from prony.agent.spool import Work
from prony.app.job_log import LOOK_S, JobLog
from prony.app.printed_lines import PrintedFiles
from prony.client.wire import delays
from prony.errors import TransportError
from prony.model.event import Event
from prony.model.lease import Progress
from prony.model.target import PlacementNote
from prony.ports.agent_link import ServerLink

# A server takes 256 Ki characters in one call.
MOST_CHARACTERS = 64 * 1024


def open_log(work: Work) -> JobLog:
    """Return the log of an attempt."""
    return JobLog(work.log, PrintedFiles(work.folder / "logs", work.stderr))


BATCH_S = 0.1
_MOST_EVENTS = 500
# While the server is away the oldest are forgotten; the log, which is a file, tells all.
_MOST_REMEMBERED = 5000


class Reporter:
    """Tells the server how one job gets on. `on_cancel` is called with True where the lease is not ours any more."""

    def __init__(
        self, link: ServerLink, lease_id: str, journal: JobLog, *, on_cancel: Callable[[bool], None], log: AgentLog
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
        self._journal.note_event(event)
        if event.kind != "printed":  # those are lines of the log
            self._events.append(event)
        self._something.set()

    def say(self, text: str) -> None:
        """Add a line to the job's log."""
        self._journal.note(text)
        self._something.set()

    def place(self, note: PlacementNote) -> None:
        """Tell where the job is at a target and how it fares there; only the newest counts."""
        if note != self._placed:
            self._placed = self._placement = note
            self._journal.note(f"{note.phase} at {note.target} {note.reason}".strip())
            self._something.set()

    async def run(self) -> None:
        """Report for as long as this is not cancelled; a server that is away hears all of it later."""
        pauses = delays(BATCH_S, 10.0)
        while True:
            # Not wait_for, which in Python 3.11 forgets to be cancelled where the event comes in the same instant.
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):  # the runner's last words come without an event
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
        self._journal.gather(is_over=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                while self._events or self._next_piece():
                    if not await self._post():
                        return

    def _next_piece(self) -> str:
        return self._journal.read(self._offset, MOST_CHARACTERS)

    async def _post(self) -> bool:
        """Send the next batch, if there is one; return False where it is to be tried again."""
        self._journal.gather()
        events = tuple(self._events)[:_MOST_EVENTS]
        text, placement = self._next_piece(), self._placement
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
        if self._events or self._next_piece():
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
