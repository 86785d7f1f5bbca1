"""Host one engine's spawner process: send orders and return answers or decoded failures, within limits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from prony.error_codes import SEE_LOG
from prony.errors import CapacityError
from prony.instruments.memory import resident_kib
from prony.model.result import Failure
from prony.ports import plugins
from prony.runner.child.parent_end import KILL, can_fork
from prony.runner.child.pipes import wait_readable
from prony.runner.child.wire import ChildOrder, Message, MessageWire
from prony.runner.exit_decoder import cancelled_failure, decode_exit, garbled_failure, over_log, over_memory, timed_out
from prony.runner.process_group import group_options, kill_group

_CHILD_ENTRY = Path(__file__).parent / "child" / "__main__.py"
_IMPORT_TIMEOUT_S = 120.0
_GRACE_NS = 3 * 10**9
_ABANDON_NS = 30 * 10**9  # a killed process with much memory takes a while to go
_POLL_S = 0.25
_MEMORY_POLL_S = 0.05
_LOG_TAIL = 4000
_LOG_MOST = 256 * 2**20


def _nothing(*_: Any) -> None:
    return None


@dataclass
class Watch:
    """Limits of one order, and who wants to hear of what happens in it."""

    timeout_ns: int
    memory_bytes: int | None = None
    stop_asked: Callable[[], bool] = lambda: False
    on_phase: Callable[[str], None] = _nothing
    # Is the machine ready too? Where not, the child goes on warming up and asks again.
    on_ready: Callable[[Message], bool] = lambda _: True
    on_measured: Callable[[Message], None] = _nothing
    on_tick: Callable[[int], None] = _nothing
    oom_kills: Callable[[], int | None] = lambda: None
    # How long it may wait between two ticks, where that is shorter than usual.
    tick_s: Callable[[], float] = lambda: _POLL_S


@dataclass
class EngineAnswer:
    """`done` is the child's own account; `failure` says why there is none."""

    done: Message | None = None
    failure: Failure | None = None
    log: str = ""


@dataclass
class _Course:
    """What is known of the order that runs."""

    begin_ns: int
    pid: int | None = None
    grace_ns: int = _GRACE_NS
    stopping_since_ns: int | None = None
    failed_since_ns: int | None = None
    oom_before: int | None = None
    answer: EngineAnswer = field(default_factory=EngineAnswer)
    exited: bool = False


class EngineHost:
    """A spawner that keeps one engine imported. Leaving the block ends it and all that it started.

    It begins to import when it is made, and is waited for where the block begins: there is time for something else
    in between.
    """

    def __init__(self, name: str, python: str, log: Path, *, alone: bool = True) -> None:
        """`alone` says that nothing else of ours is busy while it imports, so that its time may be told."""
        self.name = name
        self.alone = alone
        self.python = python
        self.has_hosted = False
        self.log = log
        self._phase_note = log.with_suffix(".phase")
        self.hello: Message = {}
        self._start()

    def _start(self) -> None:
        self._log_file = self.log.open("ab")
        self._process = subprocess.Popen(
            [self.python, str(_CHILD_ENTRY), plugins.target(plugins.ENGINES, self.name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log_file,
            **group_options(),
            env=_environment(),
        )
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise CapacityError(
                f"{self.python} could not be started",
                code="engine_broken",
                hint=f"prony engines add {self.name} installs its interpreter anew",
            )
        self._wire = MessageWire(stdout.fileno(), stdin.fileno())

    def __enter__(self) -> Self:
        try:
            self.hello = self._greeting()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def _greeting(self) -> Message:
        hello = self._first_message()
        if hello["event"] != "hello":
            code = {"missing": "engine_missing", "unsupported": "engine_unsupported"}
            words = {"missing": "is not installed", "unsupported": "cannot run on this machine", "broken": "is broken"}
            event = str(hello["event"])
            hint = "" if event == "unsupported" else self._hint()
            message = f"{self.name} {words[event]}: {hello['reason']}"
            raise CapacityError(message, hint=hint, code=code.get(event, "engine_broken"))
        return hello

    def _first_message(self) -> Message:
        deadline = time.monotonic() + _IMPORT_TIMEOUT_S
        while True:
            ready = wait_readable(self._wire.read_fd, max(0.0, deadline - time.monotonic()))
            if not ready:
                raise self._broken(f"its import timed out after {_IMPORT_TIMEOUT_S:g} s")
            try:
                block = self._wire.receive()
            except ValueError as exc:  # somebody printed before the private descriptors were made
                raise self._broken(f"its interpreter sent an unreadable message ({exc})") from exc
            if block is None:
                status = self._process.wait()
                raise self._broken(f"its import ended the interpreter ({_exit_text(status)}); {self._log_tail()}")
            if block:
                return block[0]

    def _broken(self, reason: str) -> CapacityError:
        return CapacityError(f"{self.name} is broken: {reason}", hint=self._hint(), code="engine_broken")

    def _hint(self) -> str:
        engine, adding = plugins.load_plugin(plugins.ENGINES, self.name), f"prony engines add {self.name}"
        if self.python != sys.executable:
            needed = " ".join(("numpy", *engine.requirements))
            return f"{self.python} -m pip install {needed}, or a new environment: {adding}"
        return f'pip install "prony[{engine.extra}]", or {adding}'

    def perform(self, order: ChildOrder, watch: Watch) -> EngineAnswer:
        """Have one fresh child carry out the order; whatever happens to it comes back as an answer."""
        if self.has_hosted and not can_fork():  # it was itself the child of the last order
            self.close()
            self._start()
            self.hello = self._greeting()
        self.has_hosted = True
        self._log_file.truncate(0)  # what was said before is not of this order, and would only fill the disk
        course = _Course(time.perf_counter_ns(), oom_before=watch.oom_kills())
        self._phase_note.unlink(missing_ok=True)
        self._tell(course, "order", order=asdict(replace(order, phase=str(self._phase_note))))
        pause_s = _MEMORY_POLL_S if watch.memory_bytes else _POLL_S
        while not course.exited:
            ready = wait_readable(self._wire.read_fd, min(pause_s, watch.tick_s()))
            if ready:
                self._take(course, watch)
            self._enforce(course, watch)
            watch.on_tick(course.pid or 0)
        course.answer.log = self._log_tail()
        return course.answer

    def _take(self, course: _Course, watch: Watch) -> None:
        try:
            block = self._wire.receive()
        except ValueError:  # a child that was killed in the middle of a long word, or an engine that writes anywhere
            course.answer.failure = course.answer.failure or garbled_failure(self._phase(), self._log_tail())
            self._abandon(course)
            return
        if block is None:
            self._starter_lost(course)
            return
        for message in block:
            self._hear(message, course, watch)

    def _hear(self, message: Message, course: _Course, watch: Watch) -> None:
        match message["event"]:
            case "forked":
                course.pid = message["pid"]
            case "phase":
                watch.on_phase(message["name"])
            case "ready":
                # Time enough for the inference that runs, the one that is checked, and to hand over all.
                course.grace_ns = _GRACE_NS + 3 * int(message.get("inference_ns", 0))
                self._heed_stop(course, watch)  # before it goes: else all may be measured when the stop comes
                self._tell(course, "go" if watch.on_ready(message) else "more")
            case "measured":
                watch.on_measured(message)
            case "done":
                course.answer.done = message
            case "failure":
                failure = Failure.read({key: message[key] for key in message if key != "event"})
                self._fail(course, failure)
            case "exit":
                self._handle_exit(message["status"], course, watch)

    def _tell(self, course: _Course, event: str, **body: Any) -> None:
        try:
            self._wire.send(event, **body)
        except BrokenPipeError:
            self._starter_lost(course)

    def _handle_exit(self, status: int, course: _Course, watch: Watch) -> None:
        course.exited = True
        if course.answer.done is not None or course.answer.failure is not None:
            return
        if course.stopping_since_ns is not None:  # it was not yet, or no longer, able to stop politely
            course.answer.failure = cancelled_failure(self._phase())
            return
        before, after = course.oom_before, watch.oom_kills()
        starved = before is not None and after is not None and after > before
        tail = self._log_tail()
        course.answer.failure = decode_exit(status, self._phase(), out_of_memory=starved, detail=tail)

    def _starter_lost(self, course: _Course) -> None:
        self._process.wait()
        course.exited = True
        if course.answer.failure is None:
            phase = self._phase()
            message = (
                f"the process that starts the engine ended ({_exit_text(self._process.returncode)}) during {phase}"
            )
            tail = self._log_tail()
            hint = f"{SEE_LOG}; the system may have run out of memory"
            course.answer.failure = Failure(
                code="engine_starter_lost", message=message, hint=hint, phase=phase, detail=tail
            )

    def _enforce(self, course: _Course, watch: Watch) -> None:
        """End the child where it broke a limit or was asked to stop and does not."""
        if course.exited:
            return
        now_ns = time.perf_counter_ns()
        if course.failed_since_ns is not None:
            if now_ns - course.failed_since_ns > _ABANDON_NS:
                self._abandon(course)
            return
        self._heed_stop(course, watch)
        failure = self._check_limits(course, watch, now_ns)
        if failure is not None:
            self._end_child(course, failure)

    def _heed_stop(self, course: _Course, watch: Watch) -> None:
        """Tell the child once that it was asked to stop."""
        if course.stopping_since_ns is None and watch.stop_asked():
            course.stopping_since_ns = time.perf_counter_ns()
            if course.pid is not None:
                _signal(course.pid, signal.SIGTERM)

    def _check_limits(self, course: _Course, watch: Watch, now_ns: int) -> Failure | None:
        """Return which limit is broken, if one is."""
        stopping_ns = course.stopping_since_ns
        if stopping_ns is not None and now_ns - stopping_ns > course.grace_ns:
            return cancelled_failure(self._phase())
        if now_ns - course.begin_ns > watch.timeout_ns:
            return timed_out(self._phase(), watch.timeout_ns / 1e9)
        if self.log.stat().st_size > _LOG_MOST:
            return over_log(self._phase(), _LOG_MOST / 2**20)
        if watch.memory_bytes is None or course.pid is None:
            return None
        used_kib = resident_kib(course.pid)
        if used_kib is None or used_kib * 1024 <= watch.memory_bytes:
            return None
        return over_memory(self._phase(), used_kib / 1024, watch.memory_bytes / 2**20)

    def _end_child(self, course: _Course, failure: Failure) -> None:
        self._fail(course, failure)
        if course.pid is None:  # it was never born: the spawner itself hangs
            self._abandon(course)
        else:
            _signal(course.pid, KILL)

    def _fail(self, course: _Course, failure: Failure) -> None:
        course.answer.failure = failure
        course.failed_since_ns = time.perf_counter_ns()

    def _abandon(self, course: _Course) -> None:
        """Give up a spawner that hangs, or whose child not even a kill can end; the next order gets a new one."""
        self._process.kill()
        self._process.wait()
        course.exited = True

    def _phase(self) -> str:
        """Return the phase that the child last noted."""
        if not self._phase_note.exists():
            return "start"
        return self._phase_note.read_text().strip() or "start"

    def _log_tail(self) -> str:
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - _LOG_TAIL))
            return file.read().decode(errors="replace").strip()

    def close(self) -> None:
        """End the spawner; it takes its child with it."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            kill_group(self._process.pid)
            self._process.wait()
        self._log_file.close()


def _environment() -> dict[str, str]:
    """Return this process's environment, less what would lead another interpreter astray."""
    unwanted = {"PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"}
    return {name: value for name, value in os.environ.items() if name not in unwanted}


def _signal(pid: int, number: int) -> None:
    """Signal the child's whole group, or the child where it has not made its group yet."""
    if sys.platform == "win32":
        os.kill(pid, number)
        return
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return


def _exit_text(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"
