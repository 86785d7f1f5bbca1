"""Keep the log of one attempt in a file from which any part can be sent again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from prony.agent.spool import Work
from prony.model.event import Event

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
