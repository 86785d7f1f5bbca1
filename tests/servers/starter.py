"""Fork `prony` commands for the tests from one process that has imported what they need.

Run by `servers.forked` as `python -m servers.starter SOCKET SPACE`, where SPACE is a long word that gives a command's
own line room. An order names the command and carries its streams; the answer is the number of the new process. That is
a grandchild whose parent has ended, so that the system gives it to whoever ordered it (a "subreaper" then). A
command that starts others of Prony's gets a starter of its own, before it has any thread.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import random
import runpy
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from prony.cli.main import COMMANDS
from prony.model.entry_points import forget_entry_points
from prony.model.workload import kind_packages
from prony.ports import plugins
from servers.forked import NUMBER, SIZE, Order, Starter, use_starter
from servers.process import ENGINE_HOST, DieWithParent
from servers.quiet_machine import quieten_process

# What a command imports when it begins its work. Polars makes its threads when it is first used, which is never here.
_COMMAND = ("encodings.idna", "prony.app.settings", "prony.cli.option_settings")
# The engine's process: its starter is a child of each runner's, and finds done what the runner's own starter has done.
_HOST = ("numpy", "onnxruntime", "prony.runner.child.spawner", "prony.plugins.engines.onnxruntime")
_RUNNER = (
    *_COMMAND, *_HOST, "numpy.ma", "polars", "polars._utils.parquet", "onnx", "filelock", "prony.app.runner",
    "prony.runner.jobs", "prony.runner.engines", "prony.runner.observer", "prony.runner.watch_machine",
    "prony.runner.models", "prony.runner.card_lock", "prony.runner.pagecache", "prony.runner.onnx_file",
    "prony.instruments.canary", "prony.instruments.device.software", "prony.kinds.model.run",
    "prony.kinds.model.runner.runner", "prony.kinds.script.run", "prony.kinds.service.run",
    "prony.plugins.models.zoo.source",
)  # fmt: skip
# What talks to a server imports these with its first request.
_CLIENT = (*_COMMAND, "httpcore", "h11", "anyio", "certifi")
_SUMMARIES = tuple(f"{package}.summary" for package in kind_packages().values())
_SHOW = (
    "prony.app.bench", "prony.cli.output", "prony.cli.remote", "prony.report.terminal",
    "prony.report.terminal.experiment", "prony.report.terminal.load", "prony.analyse.history", *_SUMMARIES, *_CLIENT,
)  # fmt: skip
_RUN = (
    "prony.cli.run_here", "prony.cli.finish_run", "prony.cli.progress", "prony.cli.submit", "prony.recipe.yaml_text",
    "prony.kinds.model.prepare", "prony.report.html", "prony.report.html.job", "prony.report.html.method",
    "matplotlib.figure", "matplotlib.backends.backend_agg", "yaml", *_SHOW, *_RUNNER,
)  # fmt: skip
_WORKER = (
    "polars", "prony.app.fleet.reading", "prony.app.fleet.unpack_result", "prony.recipe.yaml_text",
    "prony.kinds.model.prepare", "prony.ports.find_task", *_SUMMARIES,
)  # fmt: skip
_NEEDS = {
    "server": (
        *_COMMAND, *_WORKER, "prony.server.serve", "prony.server.logs", "prony.compat.sark.face.options",
        "alembic.command", "sqlalchemy.dialects.sqlite", "uvloop", "uvicorn.protocols.http.httptools_impl",
    ),
    "agent": ("prony.agent.agent", *_CLIENT, *_RUNNER),
    **dict.fromkeys(("run", "bench", "duet", "rerun", "load", "menu"), _RUN),
    **dict.fromkeys(("show", "report", "compare", "watch", "logs"), _SHOW),
    "exec": _RUNNER,
    "host": _HOST,
    "prony.load.client": (
        "encodings.idna", "prony.load.closed_loop", "prony.load.open_loop", "prony.load.poll", "prony.load.salts",
        "prony.load.limits", "prony.load.http", "prony.plugins.drivers.http", "prony.plugins.drivers.openai",
    ),
    "prony.load.mock.server": ("encodings.idna", "prony.load.mock.connection", "prony.load.mock.routes"),
    "prony.app.worker": _WORKER,
    "dumont": ("psutil", "redis", "tempfile", "urllib.request"),
}  # fmt: skip
# The commands that start others of Prony's.
_PARENTS = {"server", "agent", "run", "bench", "duet", "rerun", "load", "exec", "mock", "menu"}
# Numbers of files from here on are free while those that came with an order are put in their places.
_ABOVE = 512
_FAR_ABOVE = 900
_MOST_FILES = 250
# What an interpreter exits with where its last words cannot be written.
_NOT_FLUSHED = 120
_ENDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    sys.path.pop(0)  # the tests' folder: no module of theirs stands before one of the command's
    order = _wait_for_order(channel)
    if order is None:
        return
    # What this process starts may start others in turn: an agent a runner, and that an engine.
    while _name(order.words) in _PARENTS and (ordered := _start_children_starter()) is not None:
        order = ordered
    _run(order.words)


def _start_children_starter() -> Order | None:
    """Give this process a starter of its own; return None in it, and the order in what that one forks."""
    channel, other = socket.socketpair()
    parent = os.getpid()
    pid = os.fork()
    if pid:
        other.close()
        starter = Starter(channel, pid)
        use_starter(starter)
        atexit.register(starter.end)
        return None
    channel.close()
    DieWithParent(signal.SIGKILL)()
    if os.getppid() != parent:
        os._exit(0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    _place_files([nowhere] * 3 + [other.fileno()], [0, 1, 2, other.fileno()])
    use_starter(None)
    order = _wait_for_order(other)
    if order is None:
        os._exit(0)
    return order


def _wait_for_order(channel: socket.socket) -> Order | None:
    """Fork for each order, and return it in the new process; None when nobody will order any more."""
    for number in _ENDED:  # what is sent to all of our group is meant for the commands
        signal.signal(number, signal.SIG_IGN)
    while (found := _receive(channel)) is not None:
        order, files = found
        _import_needed(order.words)
        reading, writing = os.pipe()
        until_become, has_become = os.pipe()
        pid = _fork()
        if pid == 0:
            os.close(writing)
            os.read(reading, 1)  # until our parent is who ordered this process
            channel.detach()
            _become(order, files, has_become)
            return order
        for file in (reading, writing, has_become, *files):
            os.close(file)
        # A new interpreter has its line and obeys signals when its starter hears of it: so has this one.
        os.read(until_become, 1)
        os.close(until_become)
        channel.sendall(NUMBER.pack(pid))
    return None


def _receive(channel: socket.socket) -> tuple[Order, list[int]] | None:
    head, files, _, _ = socket.recv_fds(channel, SIZE.size, _MOST_FILES)
    if not head:
        return None
    (size,) = SIZE.unpack(head)
    text = b""
    while len(text) < size:
        text += channel.recv(size - len(text))
    return Order(**json.loads(text)), files


def _import_needed(words: list[str]) -> None:
    """Import what every process of this kind would import for itself; the second one finds it done."""
    known, name = len(sys.modules), _name(words)
    if name in COMMANDS:
        importlib.import_module(f"prony.cli.commands.{COMMANDS[name][0]}")
    for module in _NEEDS.get(name, ()):
        importlib.import_module(module)
    if len(sys.modules) > known:
        _load_plugins()
        if name == "agent":  # what programs say of their versions is asked once, and each agent remembers it
            sys.modules["prony.app.abilities"].inspect_abilities(("service", "launcher"))
        gc.collect()
        gc.freeze()  # no collection looks at it again, so that what is shared with the children stays so


def _load_plugins() -> None:
    """Find all plug-ins once, and load those of which a runner makes one each; what they need of others waits."""
    groups = [value for value in vars(plugins).values() if isinstance(value, str) and value.startswith("prony.")]
    found = {group: plugins.find_plugins(group) for group in groups}
    for entry in (entry for group in (plugins.ENGINES, plugins.PROBES) for entry in found[group].values()):
        if entry.module.startswith("prony."):
            importlib.import_module(entry.module)


def _name(words: list[str]) -> str:
    """Return which command or module this is, for what it needs; empty: nothing in particular."""
    if Path(words[0]).name == "recorded_agent.py":
        return "agent"
    if Path(words[0]) == ENGINE_HOST:
        return "host"
    return next((word for word in words if word in COMMANDS or word in _NEEDS), "")


def _fork() -> int:
    """Return the number of a grandchild that has lost its parent; in itself, return 0."""
    answer, said = os.pipe()
    parent = os.fork()
    if parent == 0:
        child = os.fork()
        if child == 0:
            os.close(answer)
            os.close(said)
            return 0
        os.write(said, NUMBER.pack(child))
        os._exit(0)
    os.waitpid(parent, 0)
    os.close(said)
    (pid,) = NUMBER.unpack(os.read(answer, NUMBER.size))
    os.close(answer)
    return int(pid)


def _become(order: Order, files: list[int], has_become: int) -> None:
    """Make this process what a new interpreter would be that was started with the order; then close `has_become`."""
    if order.new_session:
        os.setsid()
    high = _duplicate_above(has_become, [_FAR_ABOVE, *order.passed])
    _place_files(files, [0, 1, 2, *order.passed], kept=high)
    os.chdir(order.cwd)
    os.umask(order.umask)
    os.sched_setaffinity(0, order.affinity)
    if order.death_signal:
        DieWithParent(signal.Signals(order.death_signal))()
    _change_path(_path_in(os.environ), _path_in(order.environment))
    os.environ.clear()
    os.environ.update(order.environment)
    quieten_process()
    _rewrite_proc(order)
    _open_streams()
    random.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    for number in _ENDED:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.close(high)


def _path_in(environment: Mapping[str, str]) -> list[str]:
    value = environment.get("PYTHONPATH", "")
    return [os.path.abspath(entry) for entry in value.split(os.pathsep)] if value else []  # noqa: PTH100 - as Python does


def _change_path(before: list[str], after: list[str]) -> None:
    """Put the folders of a command's PYTHONPATH in the place of ours, and look for plug-ins again."""
    if before != after:
        sys.path[:] = [*dict.fromkeys(after), *(entry for entry in sys.path if entry not in before)]
        forget_entry_points()


def _duplicate_above(file: int, numbers: list[int]) -> int:
    """Return a file of the same, with a number above all of these."""
    import fcntl

    return fcntl.fcntl(file, fcntl.F_DUPFD, max(numbers) + 1)


def _place_files(files: list[int], places: list[int], kept: int = -1) -> None:
    """Give each file its number, and close all others but the one that is kept."""
    high = [_duplicate_above(file, [_ABOVE, *places]) for file in files]
    for file, place in zip(high, places, strict=True):
        os.dup2(file, place, inheritable=True)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - its entries are numbers
        if int(name) not in (kept, *places):
            _close(int(name))


def _close(file: int) -> None:
    try:
        os.close(file)
    except OSError:  # the folder that lists them was one of them
        return


def _rewrite_proc(order: Order) -> None:
    """Have the system show this command's line and variables, where whoever looks for it reads them.

    Only what C still points to in that memory would suffer: the variables were set anew, so nothing does.
    """
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    first_word, last_word, first_variable, last_variable = map(int, fields[45:49])
    # A last byte that is not 0 says that the line is one text, which ends at the first 0, with spaces between words.
    room = last_word - first_word - 1
    line = " ".join([sys.executable, *order.words]).encode()[: room - 1]
    ctypes.memmove(first_word, line.ljust(room, b"\0") + b" ", room + 1)
    room = last_variable - first_variable
    block = b"".join(f"{name}={value}".encode(errors="surrogateescape") + b"\0" for name, value in os.environ.items())
    ctypes.memmove(first_variable, block[:room].ljust(room, b"\0"), room)


def _open_streams() -> None:
    """Open the standard streams as an interpreter does at its start."""
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", errors="strict", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = _open_output(1, "strict", is_lined=os.isatty(1), is_direct=unbuffered)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _open_output(2, "backslashreplace", is_lined=True, is_direct=unbuffered)  # type: ignore[misc]


def _open_output(number: int, errors: str, *, is_lined: bool, is_direct: bool) -> Any:
    stream = open(number, "w", encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
    stream.reconfigure(line_buffering=is_lined, write_through=is_direct)
    return stream


def _run(words: list[str]) -> None:
    """Run a module (`-m`) or a file, as the interpreter's own arguments say, and exit as it would."""
    sys.orig_argv[:] = [sys.executable, *words]
    is_safe = words[0] == "-P"
    kind, *rest = words[1:] if is_safe else words
    try:
        if kind == "-m":
            sys.path[:0] = [] if is_safe else [str(Path.cwd())]
            sys.argv[:] = rest
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(kind).parent))
            sys.argv[:] = [kind, *rest]
            runpy.run_path(kind, run_name="__main__")
    except SystemExit as exc:
        if exc.code is not None and not isinstance(exc.code, int):
            sys.stderr.write(f"{exc.code}\n")
            _exit(1)
        _exit(exc.code or 0)
    except KeyboardInterrupt:
        sys.excepthook(*sys.exc_info())
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:  # noqa: BLE001 - the edge of this process, as an interpreter has it
        sys.excepthook(*sys.exc_info())
        _exit(1)
    _exit(0)


def _exit(code: int) -> NoReturn:
    """End as an interpreter does, but that the modules are not taken apart.

    Copies of shared memory cost 0.1 s, and a library that then waits for its threads waits for ever: a fork has none.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if not stream.closed:
                stream.flush()
    except OSError:
        code = code or _NOT_FLUSHED
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main()
