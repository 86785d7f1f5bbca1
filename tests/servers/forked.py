"""Start `prony` commands of the tests by forking a process that has imported them, where the system allows it.

A new interpreter spends a second or two on imports before a server, an agent or a runner does anything, and the tests
start thousands. `fork_commands` puts a subclass in the place of `subprocess.Popen`: `python -m prony ...` and the
programs in `tests/chaos` become real processes, children of whoever starts them, with their own streams, folder,
environment, session and line in /proc, but their imports are done. Everything else starts as ever.

PRONY_TEST_FORKED=0 refuses it. Other systems than Linux and a measurement of coverage get new interpreters all the
same, and so does `plain_processes`, for a test whose subject is the start itself.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import multiprocessing
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from multiprocessing.context import ForkServerContext, SpawnContext
from pathlib import Path
from typing import IO, Any

from servers.process import ENGINE_HOST, DieWithParent

SIZE, NUMBER = struct.Struct("!I"), struct.Struct("!i")
_TESTS = Path(__file__).parents[1]
_PROGRAMS = _TESTS / "chaos"
# Folders that a command may have on its path: nothing of plug-ins there was imported before they were asked for.
_ON_PATH = ("", str(_TESTS / "faulty"), str(_TESTS))
_MODULES = ("prony", "prony.app.worker", "prony.load.client", "prony.load.mock.server", "dumont")
_PR_SET_CHILD_SUBREAPER = 36
# What a store imports when it is opened; not polars, whose threads a fork would cut off.
_STORE = (
    "pytest", "numpy", "prony.store.store", "prony.store.transfer", "prony.kinds.model.schema", "alembic.command",
    "sqlalchemy.dialects.sqlite", "sqlalchemy.dialects.postgresql.psycopg",
)  # fmt: skip
_SPACE = 4000
_THREADS = "OPENBLAS_NUM_THREADS"
_VARIABLES_SPACE = 32000
# What an interpreter or a library that the starter has loaded reads then, and never again.
_READ_AT_START = re.compile(r"(PYTHON|LD_|LC_|LANG|TZ|OPENBLAS|MALLOC|COVERAGE|OTEL_|GLIBC|MPL)")


@dataclass(frozen=True)
class Order:
    """A command, and what its process shall inherit."""

    words: list[str]
    cwd: str
    environment: dict[str, str]
    umask: int
    affinity: list[int]
    passed: list[int]
    new_session: bool
    death_signal: int


class Starter:
    """The process that forks, as its owner sees it; it lives as long as the thread that made it."""

    def __init__(
        self, channel: socket.socket | None = None, pid: int = 0, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._channel, self._pid = (channel, pid) if channel is not None else _start_starter(environment)
        self._lock = threading.Lock()
        self._variables = _read_at_start(environment)
        self._prctl = ctypes.CDLL(None).prctl
        self._owner = os.getpid()

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Return whether a process with these variables would import what the starter has imported."""
        size = sum(len(name) + len(value) + 2 for name, value in environment.items())
        is_owner = self._owner == os.getpid()
        return is_owner and size < _VARIABLES_SPACE and _read_at_start(environment) == self._variables

    def start(self, order: Order, files: Sequence[int]) -> int:
        """Start a process, a child of this one; return its number."""
        text = json.dumps(asdict(order)).encode()
        with self._lock:
            # Until it is ours: whoever else loses its parent meanwhile becomes ours too, which harms nobody.
            self._prctl(_PR_SET_CHILD_SUBREAPER, 1)
            try:
                socket.send_fds(self._channel, [SIZE.pack(len(text))], files)
                self._channel.sendall(text)
                answer = self._channel.recv(NUMBER.size, socket.MSG_WAITALL)
            finally:
                self._prctl(_PR_SET_CHILD_SUBREAPER, 0)
        if len(answer) < NUMBER.size:
            raise OSError("the process that forks commands has ended")
        return int(NUMBER.unpack(answer)[0])

    def end(self) -> None:
        """Have it end, and wait until it has."""
        if self._owner != os.getpid():
            return
        self._channel.close()
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


_Plain = subprocess.Popen
_plain_start_by_loop = asyncio.create_subprocess_exec
_starter: Starter | None = None
_further: list[Starter] = []  # for commands that find other packages on their path


def _start_starter(environment: Mapping[str, str]) -> tuple[socket.socket, int]:
    channel, other = socket.socketpair()
    variables = dict(environment) | {_THREADS: "1", "SPACE": "x" * _VARIABLES_SPACE}
    command = [sys.executable, "-m", "servers.starter", str(other.fileno()), "x" * _SPACE]
    with other:
        process = _Plain(
            command, env=variables, pass_fds=[other.fileno()], cwd=_TESTS, stdin=subprocess.DEVNULL,
            preexec_fn=DieWithParent(signal.SIGKILL),
        )  # fmt: skip
    process.returncode = 0  # whoever ends it waits for it, not the object
    return channel, process.pid


class ForkedPopen(subprocess.Popen):  # type: ignore[type-arg]
    """A process as ever, but that a `prony` command is forked by the starter."""

    def _execute_child(self, args: Any, executable: Any, preexec_fn: Any, close_fds: Any, *rest: Any) -> None:
        found = _order(args, executable, preexec_fn, close_fds, rest)
        if found is None:
            super()._execute_child(args, executable, preexec_fn, close_fds, *rest)  # type: ignore[misc]
            return
        starter, order = found
        pipes = rest[6:12]
        given = [pipes[0], pipes[3], pipes[5]]
        files = [number if file == -1 else file for number, file in enumerate(given)]
        try:
            self.pid = starter.start(order, [*files, *order.passed])
            self._child_created = True
        finally:
            self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


class ForkedProcess:
    """A forked process as `asyncio.subprocess` shows one, for a loop that starts processes without `Popen`."""

    def __init__(
        self, process: subprocess.Popen[bytes], stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader
    ) -> None:
        self._process = process
        self.pid, self.stdin, self.stdout = process.pid, stdin, stdout
        self.kill = process.kill

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    async def wait(self) -> int:
        """Wait until it has ended: its end makes a descriptor of it readable."""
        if self._process.poll() is None:
            loop, has_ended = asyncio.get_running_loop(), asyncio.Event()
            watched = os.pidfd_open(self.pid)
            loop.add_reader(watched, has_ended.set)
            try:
                await has_ended.wait()
            finally:
                loop.remove_reader(watched)
                os.close(watched)
        return self._process.wait()


async def start_by_loop(*command: Any, **options: Any) -> Any:
    """Start a process as `asyncio.create_subprocess_exec` does, and ours by the starter whatever the loop is."""
    pipe = asyncio.subprocess.PIPE
    given = (options.get("stdin"), options.get("stdout"), options.get("stderr"))
    if _starter is None or given != (pipe, pipe, None) or not _is_ours(list(command)):
        return await _plain_start_by_loop(*command, **options)
    process = ForkedPopen(command, **options)
    try:
        return await _show_process(process)
    except BaseException:  # whoever asked for it is cancelled: nobody will ever end it
        process.kill()
        process.wait()
        raise


class _LoopPipe:
    """An end of a pipe that a loop owns.

    uvloop closes the number, and lets go of the file that it was given, which closes that number too: the later of the
    two may hit a pipe of the next process. The loop of the standard library calls `close` alone.
    """

    def __init__(self, file: IO[bytes], loop: asyncio.AbstractEventLoop) -> None:
        self._number = os.dup(file.fileno())
        file.close()
        self._is_closed_by_loop = type(loop).__module__.startswith("uvloop")

    def fileno(self) -> int:
        return self._number

    def close(self) -> None:
        if not self._is_closed_by_loop:
            os.close(self._number)


async def _show_process(process: subprocess.Popen[bytes]) -> ForkedProcess:
    if process.stdin is None or process.stdout is None:
        raise ValueError("the process has no pipes")
    loop, stdout = asyncio.get_running_loop(), asyncio.StreamReader()
    reading, writing = _LoopPipe(process.stdout, loop), _LoopPipe(process.stdin, loop)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdout), reading)
    transport, flow = await loop.connect_write_pipe(lambda: asyncio.streams.FlowControlMixin(loop), writing)
    return ForkedProcess(process, asyncio.StreamWriter(transport, flow, None, loop), stdout)


def use_starter(starter: Starter | None) -> None:
    """Have this process start its `prony` commands by that one from now on; None: as new interpreters."""
    global _starter  # noqa: PLW0603 - there is one for each process, as there is one `subprocess.Popen`
    _starter = starter
    subprocess.Popen = ForkedPopen if starter is not None else _Plain  # type: ignore[misc]
    asyncio.create_subprocess_exec = start_by_loop if starter is not None else _plain_start_by_loop


@contextmanager
def fork_commands() -> Iterator[None]:
    """Fork the commands that are started within the block, where that can be done."""
    measures = any(name.startswith("COVERAGE") for name in os.environ) or "coverage" in sys.modules
    if sys.platform != "linux" or measures:
        yield
        return
    starter = Starter()
    use_starter(starter)
    try:
        yield
    finally:
        use_starter(None)
        starter.end()


@contextmanager
def fork_with_path(path: str) -> Iterator[None]:
    """Fork the commands within the block too whose PYTHONPATH is this one, where others are forked."""
    if _starter is None:
        yield
        return
    starter = Starter(environment=os.environ | {"PYTHONPATH": path})
    _further.append(starter)
    try:
        yield
    finally:
        _further.remove(starter)
        starter.end()


@contextmanager
def plain_processes() -> Iterator[None]:
    """Start new interpreters within the block, whatever they run."""
    before = _starter
    use_starter(None)
    try:
        yield
    finally:
        use_starter(before)


def process_context() -> ForkServerContext | SpawnContext:
    """Return how `multiprocessing` starts processes that have what a store needs, but none of our threads."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_STORE))
    return context


def _order(
    args: Any, executable: Any, preexec_fn: Any, close_fds: bool, rest: Sequence[Any]
) -> tuple[Starter, Order] | None:
    """Return which starter is asked for what, or None where only a new interpreter will do."""
    pass_fds, cwd, env, _, _, shell = rest[:6]
    _, gid, gids, uid, umask, new_session, *group = rest[12:]
    words = [] if isinstance(args, str | bytes | os.PathLike) else [os.fspath(word) for word in args]
    environment = dict(os.environ if env is None else env)
    if _starter is None or not _is_ours(words) or not close_fds or shell:
        return None
    if (
        executable not in (None, words[0])
        or (gid, gids, uid, umask) != (None, None, None, -1)
        or group not in ([], [-1])
    ):
        return None
    if not _is_known(preexec_fn) or not all(isinstance(word, str) for word in _flat(environment)):
        return None
    folder = os.fspath(cwd) if cwd is not None else str(Path.cwd())
    starter = next((one for one in (_starter, *_further) if one.fits(environment)), None)
    if starter is None or not Path(folder).is_dir():
        return None
    return starter, Order(
        words[1:],
        folder,
        environment,
        _umask(),
        sorted(os.sched_getaffinity(0)),
        list(pass_fds),
        new_session=bool(new_session),
        death_signal=int(preexec_fn.sent) if isinstance(preexec_fn, DieWithParent) else 0,
    )


def _is_ours(words: list[Any]) -> bool:
    if not words or words[0] != sys.executable or not all(isinstance(word, str) for word in words):
        return False
    rest = words[2:] if words[1:2] == ["-P"] else words[1:]
    return (rest[:1] == ["-m"] and rest[1] in _MODULES) or (bool(rest) and _is_program(Path(rest[0])))


def _is_known(before_start: Any) -> bool:
    """Is what a new process is to call first done by the starter? A forked command hears Ctrl-C in any case."""
    is_to_hear = getattr(before_start, "__module__", "") == "prony.cli.commands.menu"
    return is_to_hear or isinstance(before_start, DieWithParent | None)


def _is_program(path: Path) -> bool:
    return path.parent == _PROGRAMS or path == ENGINE_HOST  # of this Python; one of another is a new interpreter


def _flat(environment: Mapping[Any, Any]) -> list[Any]:
    return [*environment.keys(), *environment.values()]


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    found = {name: value for name, value in environment.items() if _READ_AT_START.match(name)}
    if found.get(_THREADS) == "1":  # as the starter has it
        del found[_THREADS]
    path = [entry for entry in found.pop("PYTHONPATH", "").split(os.pathsep) if entry not in _ON_PATH]
    return found | {"PYTHONPATH": os.pathsep.join(path)}


def _umask() -> int:
    found = re.search(r"^Umask:\s*(\d+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1], 8) if found else 0o022
