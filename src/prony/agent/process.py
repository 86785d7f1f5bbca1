"""Run one attempt as a `prony exec` child process and read its events.

The runner is a process group of its own and ends with this process, however this process ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil
from pydantic import ValidationError

from prony.agent.spool import Work
from prony.app.execution import runner_command, runner_environment
from prony.model.event import Event
from prony.runner.process_group import JobObject, ask_group_to_stop, group_options, hold_group, kill_group
from prony.store.home import Home
from prony.store.result_tar import disk_told

GRACE_S = 10.0
_READ = 65536


class RunnerProcess:
    """A runner at work; whoever starts it closes it, and with it all that it started."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        said: asyncio.StreamReader,
        pipe: asyncio.ReadTransport | ThreadedPipe,
        job: JobObject | None = None,
    ) -> None:
        self._process = process
        self._job = job
        self._said = said
        self._pipe = pipe

    @classmethod
    async def start(
        cls,
        work: Work,
        home: Home,
        calibration_id: str | None = None,
        policy: Mapping[str, str] | None = None,
        *,
        is_part: bool = False,
    ) -> Self:
        """Start it in the attempt's own folder, where a relative path in a job leads; `policy` are variables.

        One that runs a part of a load is told on its standard input when the others are met."""
        command = runner_command([work.job_file], work.folder, calibration_id)
        # A pipe of our own: whoever inherits it from the runner and lives on must not keep us from closing it.
        reading, writing = os.pipe()
        said, pipe = await _reader(reading)
        try:
            # Errors go to a file: if this process is killed, the runner can still say its last words and end in peace.
            with disk_told(work.path), work.stderr.open("ab") as stderr:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.PIPE if is_part else asyncio.subprocess.DEVNULL,
                    stdout=writing,
                    stderr=stderr,
                    cwd=work.path,
                    env=runner_environment(home) | dict(policy or {}),
                    **group_options(),
                )
        except BaseException:
            pipe.close()
            raise
        finally:
            os.close(writing)
        return cls(process, said, pipe, hold_group(process.pid))

    @property
    def pid(self) -> int:
        return self._process.pid

    async def events(self) -> AsyncIterator[Event | str]:
        """Yield what the runner says until it says no more; a line that is no event is yielded as it is."""
        pending = b""
        while block := await self._said.read(_READ):
            *lines, pending = (pending + block).split(b"\n")
            for line in lines:
                yield _event(line)

    def tell(self, line: str) -> None:
        """Write a line to one that listens; one that has ended hears nothing."""
        if self._process.stdin is not None and self._process.returncode is None:
            self._process.stdin.write(line.encode() + b"\n")

    async def wait(self) -> int:
        return await self._process.wait()

    async def stop(self, grace_s: float = GRACE_S) -> int:
        """Ask it to stop and keep what was measured; whatever is left after the grace is killed. Return how it ended.

        Whoever waits for this must not give up: it takes little longer than the grace.
        """
        family = _descendants(self.pid) if self._process.returncode is None else []
        if self._process.returncode is None:
            ask_group_to_stop(self.pid)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), grace_s)
        self.kill(family)
        return await self._process.wait()

    def kill(self, family: list[psutil.Process] | None = None) -> None:
        """End it at once, with everything that it started."""
        every = set(family or ())
        if self._process.returncode is None:  # else its number may be another process's by now
            every |= set(_descendants(self.pid))
            kill_group(self.pid, self._job)
        for process in every:
            with suppress(psutil.NoSuchProcess):  # psutil knows whether the number was given to another one since
                process.kill()

    def close(self) -> None:
        """Hear no more, and see that nothing of it is left."""
        self.kill()
        self._pipe.close()
        if self._job is not None:
            self._job.close()


class ThreadedPipe:
    """Feeds a reader from a thread: the event loop of Windows reads no pipes of `os.pipe`."""

    def __init__(self, descriptor: int, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(descriptor,), name="runner's pipe", daemon=True).start()

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb", buffering=0) as file, suppress(RuntimeError):  # the loop may end first
            while block := file.read(_READ):
                self._loop.call_soon_threadsafe(self._reader.feed_data, block)
            self._loop.call_soon_threadsafe(self._reader.feed_eof)

    def close(self) -> None:
        """Do nothing: the thread ends with the last writer, who was killed."""


async def _reader(descriptor: int) -> tuple[asyncio.StreamReader, asyncio.ReadTransport | ThreadedPipe]:
    reader = asyncio.StreamReader()
    if sys.platform == "win32":
        return reader, ThreadedPipe(descriptor, reader)
    file = os.fdopen(descriptor, "rb", buffering=0)
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    return reader, pipe


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _event(line: bytes) -> Event | str:
    text = line.decode(errors="replace")
    try:
        return Event.read(json.loads(text))
    except (ValueError, ValidationError):
        return text


def end_runners(folder: Path, grace_s: float = GRACE_S) -> None:
    """End the runners of an earlier life that still write to a folder. Blocking.

    They are known by their command: a number in a file might be another process's by now.
    """
    found = [process for process in psutil.process_iter() if _is_runner(process, folder)]
    if not found:
        return
    family = [*found, *(child for process in found for child in _descendants(process.pid))]
    for process in found:
        with suppress(psutil.Error):
            process.terminate()
    _, alive = psutil.wait_procs(family, timeout=grace_s)
    for process in alive:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=grace_s)


def _is_runner(process: psutil.Process, folder: Path) -> bool:
    try:
        command = process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
    return "exec" in command and str(folder) in command
