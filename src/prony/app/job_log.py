"""Write the log of a job: what happens to it and what it prints, line by line, with time and source."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from prony.app.printed_lines import JOB_LOG, NOTES, PrintedEvents, PrintedFiles
from prony.model.event import Event

# Beyond this a log fills disks and is read by nobody; the files that were printed stay whole beside it.
MOST_BYTES = 32 * 2**20
# A load tells how it goes four times a second; that is kept as numbers, not as lines.
_UNNOTED = frozenset({"load", "meet"})
LOOK_S = 1.0


class JobLog:
    """A file of lines `TIME SOURCE TEXT`. TIME is when the line was read, in UTC; SOURCE is `prony`, `runner` or the
    name of a file in the folder `logs` of the result.

    Offsets count bytes of UTF-8. Nothing is written before the folder of `path` is there.
    """

    def __init__(
        self,
        path: Path,
        files: PrintedFiles | None = None,
        *,
        on_lines: Callable[[str, Sequence[str]], None] | None = None,
    ) -> None:
        self._path = path
        self._files = files
        self._on_lines = on_lines
        self._waiting: list[str] = []
        self._size = 0

    def note_event(self, event: Event) -> None:
        """Note what happened, or what was printed elsewhere; what was printed before it stands before it."""
        if event.kind in _UNNOTED:
            return
        if event.kind == "printed":
            self._write("_".join(event.phase.split()) or NOTES, event.message.split("\n"))
            return
        if event.state:
            self.gather()
        self.note(_format_event(event))

    def note(self, text: str) -> None:
        """Add a line of Prony's own."""
        self._write(NOTES, text.splitlines())

    def gather(self, *, is_over: bool = False) -> None:
        """Take over what was printed since the last look; `is_over`: nothing follows, so half a line is a line."""
        while self._look(is_over=is_over) and is_over and self._size <= MOST_BYTES:
            pass

    def _look(self, *, is_over: bool) -> bool:
        """Take over one look's worth of every file; return whether there was anything."""
        found = False
        for name, lines in self._files.read(is_over=is_over) if self._files is not None else ():
            found = True
            self._write(name, lines)
            if self._on_lines is not None:
                self._on_lines(name, lines)
        return found

    def read(self, offset: int, most: int) -> str:
        """Return the text from an offset on, at most so many bytes."""
        try:
            with self._path.open("rb") as file:
                file.seek(offset)
                block = file.read(most)
        except OSError:
            return ""
        return block.decode(errors="ignore")  # a letter that was cut in two comes whole with the next piece

    def _write(self, source: str, lines: Sequence[str]) -> None:
        if not lines or self._size > MOST_BYTES:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._waiting += [f"{now} {source} {line}\n" for line in lines]
        self._size += sum(len(line.encode(errors="replace")) for line in self._waiting[-len(lines) :])
        if self._size > MOST_BYTES:
            note = f"the log is cut here, after {MOST_BYTES // 2**20} MiB; the files of the result are complete"
            self._waiting.append(f"{now} {NOTES} {note}\n")
        if not self._path.parent.is_dir():
            return
        # The disk is full: whoever keeps the result will say so.
        with suppress(OSError), self._path.open("ab") as file:
            file.write("".join(self._waiting).encode(errors="replace"))
        self._waiting.clear()


class RunLogs:
    """The logs of jobs that run on this machine, each beside its result. `emit` also gets what they print, as events,
    for whoever follows them from afar."""

    def __init__(self, folders: Mapping[str, Path], emit: Callable[[Event], None] | None = None) -> None:
        self._told = {job_id: PrintedEvents(job_id, emit) for job_id in folders if emit is not None}
        self._logs = {job_id: self._open_log(job_id, folder / "logs") for job_id, folder in folders.items()}
        self._current: JobLog | None = None
        self._looked_s = 0.0

    def _open_log(self, job_id: str, logs: Path) -> JobLog:
        told = self._told.get(job_id)
        return JobLog(logs / JOB_LOG, PrintedFiles(logs), on_lines=told.tell if told is not None else None)

    def note_event(self, event: Event) -> None:
        log = self._logs.get(event.job_id)
        if log is not None:
            self._current = log
            log.note_event(event)
        if event.kind == "finished" and event.job_id in self._told:
            self._told[event.job_id].tell_skipped()
        self.look()

    def note_first(self, on_event: Callable[[Event], None]) -> Callable[[Event], None]:
        """Return what notes an event and then hands it on."""

        def hear(event: Event) -> None:
            self.note_event(event)
            on_event(event)

        return hear

    def look(self) -> None:
        """Take over what the job at work has printed, at most once a second."""
        if self._current is not None and time.monotonic() - self._looked_s >= LOOK_S:
            self._looked_s = time.monotonic()
            self._current.gather()

    def close(self) -> None:
        """Take over what is left of every job, and say how much of it was left out."""
        for log in self._logs.values():
            log.gather(is_over=True)
        for told in self._told.values():
            told.tell_skipped()


def _format_event(event: Event) -> str:
    count = f" {event.done}/{event.total}" if event.total else ""
    return " ".join(f"{event.kind}{count} {event.phase} {event.state} {event.message}".split())
