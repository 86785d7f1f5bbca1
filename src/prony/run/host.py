"""An engine's spawner as the runner sees it: an order in, an answer or a decoded failure out, within limits."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from prony.errors import CapacityError
from prony.measure.memory import resident_kib
from prony.model.result import Failure
from prony.ports import plugins
from prony.run.child.wire import Message, Order, Wire
from prony.run.decode import decode_exit, over_memory, timed_out

_CHILD_ENTRY = Path(__file__).parent / "child" / "__main__.py"
_IMPORT_TIMEOUT_S = 120.0
_GRACE_NS = 3 * 10**9
_POLL_S = 0.25
_MEMORY_POLL_S = 0.05
_LOG_TAIL = 4000


def _nothing(*_: Any) -> None:
    return None


@dataclass
class Watch:
    """Limits of one order, and who wants to hear of what happens in it."""

    timeout_ns: int
    memory_bytes: int | None = None
    stop_asked: Callable[[], bool] = lambda: False
    on_phase: Callable[[str], None] = _nothing
    on_ready: Callable[[], None] = _nothing
    on_measured: Callable[[Message], None] = _nothing
    on_tick: Callable[[int], None] = _nothing
    oom_kills: Callable[[], int | None] = lambda: None


@dataclass
class Answer:
    """`done` is the child's own account; `failure` says why there is none."""

    done: Message | None = None
    failure: Failure | None = None
    log: str = ""


@dataclass
class _Course:
    """What is known of the order that runs."""

    begin_ns: int
    pid: int | None = None
    stopping_since_ns: int | None = None
    oom_before: int | None = None
    answer: Answer = field(default_factory=Answer)
    exited: bool = False


class EngineHost:
    """A spawner that keeps one engine imported. Leaving the block ends it and all that it started.

    It begins to import when it is made, and is waited for where the block begins: there is time for something else
    in between.
    """

    def __init__(self, name: str, python: str, log: Path) -> None:
        self.name = name
        self.python = python
        self.log = log
        self._log_file = log.open("ab")
        self._phase_note = log.with_suffix(".phase")
        self._process = subprocess.Popen(
            [python, str(_CHILD_ENTRY), plugins.target(plugins.ENGINES, name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log_file,
            start_new_session=True,
            env=_environment(),
        )
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise CapacityError(f"no pipe to {python}", code="engine_broken")
        self._wire = Wire(stdout.fileno(), stdin.fileno())
        self.hello: Message = {}

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
        ready, _, _ = select.select([self._wire.read_fd], [], [], _IMPORT_TIMEOUT_S)
        block = self._wire.receive() if ready else None
        if not ready:
            reason = f"its import did not end within {_IMPORT_TIMEOUT_S:g} s"
            raise CapacityError(f"{self.name} is broken: {reason}", hint=self._hint(), code="engine_broken")
        if not block:
            status = self._process.wait()
            reason = f"its import ended the interpreter ({_exit_text(status)}); {self._log_tail(0)}"
            raise CapacityError(f"{self.name} is broken: {reason}", hint=self._hint(), code="engine_broken")
        hello = block[0]
        if hello["event"] != "hello":
            code = {"missing": "engine_missing", "unsupported": "engine_unsupported"}
            words = {"missing": "is not installed", "unsupported": "cannot run here", "broken": "is broken"}
            event = str(hello["event"])
            hint = "" if event == "unsupported" else self._hint()
            message = f"{self.name} {words[event]}: {hello['reason']}"
            raise CapacityError(message, hint=hint, code=code.get(event, "engine_broken"))
        return hello

    def _hint(self) -> str:
        extra = plugins.load(plugins.ENGINES, self.name).extra
        return f'pip install "prony[{extra}]", or prony engines add {self.name}'

    def perform(self, order: Order, watch: Watch) -> Answer:
        """Have one fresh child carry out the order; whatever happens to it comes back as an answer."""
        log_start = self.log.stat().st_size
        course = _Course(time.perf_counter_ns(), oom_before=watch.oom_kills())
        self._phase_note.unlink(missing_ok=True)
        self._tell(course, log_start, "order", order=asdict(replace(order, phase=str(self._phase_note))))
        pause_s = _MEMORY_POLL_S if watch.memory_bytes else _POLL_S
        while not course.exited:
            ready, _, _ = select.select([self._wire.read_fd], [], [], pause_s)
            if ready:
                self._take(course, watch, log_start)
            self._enforce(course, watch)
            watch.on_tick(course.pid or 0)
        course.answer.log = self._log_tail(log_start)
        return course.answer

    def _take(self, course: _Course, watch: Watch, log_start: int) -> None:
        block = self._wire.receive()
        if block is None:
            self._spawner_lost(course, log_start)
            return
        for message in block:
            self._hear(message, course, watch, log_start)

    def _hear(self, message: Message, course: _Course, watch: Watch, log_start: int) -> None:
        match message["event"]:
            case "forked":
                course.pid = message["pid"]
            case "phase":
                watch.on_phase(message["name"])
            case "ready":
                watch.on_ready()
                self._tell(course, log_start, "go")
            case "measured":
                watch.on_measured(message)
            case "done":
                course.answer.done = message
            case "failure":
                course.answer.failure = Failure.read({key: message[key] for key in message if key != "event"})
            case "exit":
                self._exited(message["status"], course, watch, log_start)

    def _tell(self, course: _Course, log_start: int, event: str, **body: Any) -> None:
        try:
            self._wire.send(event, **body)
        except BrokenPipeError:
            self._spawner_lost(course, log_start)

    def _exited(self, status: int, course: _Course, watch: Watch, log_start: int) -> None:
        course.exited = True
        if course.answer.done is None and course.answer.failure is None:
            before, after = course.oom_before, watch.oom_kills()
            starved = before is not None and after is not None and after > before
            tail = self._log_tail(log_start)
            course.answer.failure = decode_exit(status, self._phase(), out_of_memory=starved, detail=tail)

    def _spawner_lost(self, course: _Course, log_start: int) -> None:
        self._process.wait()
        course.exited = True
        if course.answer.failure is None:
            phase = self._phase()
            message = f"the engine's spawner ended ({_exit_text(self._process.returncode)}) during {phase}"
            tail = self._log_tail(log_start)
            course.answer.failure = Failure(code="spawner_lost", message=message, phase=phase, detail=tail)

    def _enforce(self, course: _Course, watch: Watch) -> None:
        """End the child where it broke a limit or was asked to stop and does not."""
        now_ns = time.perf_counter_ns()
        if course.exited or course.pid is None or course.answer.failure is not None:
            return
        if watch.stop_asked() and course.stopping_since_ns is None:
            course.stopping_since_ns = now_ns
            _signal(course.pid, signal.SIGTERM)
        if course.stopping_since_ns is not None and now_ns - course.stopping_since_ns > _GRACE_NS:
            phase = self._phase()
            self._end_child(course, Failure(code="cancelled", message=f"stopped during {phase}", phase=phase))
        elif now_ns - course.begin_ns > watch.timeout_ns:
            self._end_child(course, timed_out(self._phase(), watch.timeout_ns / 1e9))
        elif watch.memory_bytes is not None:
            used_kib = resident_kib(course.pid)
            if used_kib is not None and used_kib * 1024 > watch.memory_bytes:
                self._end_child(course, over_memory(self._phase(), used_kib / 1024, watch.memory_bytes / 2**20))

    def _end_child(self, course: _Course, failure: Failure) -> None:
        course.answer.failure = failure
        if course.pid is not None:
            _signal(course.pid, signal.SIGKILL)

    def _phase(self) -> str:
        """Return the phase that the child last noted."""
        if not self._phase_note.exists():
            return "start"
        return self._phase_note.read_text().strip() or "start"

    def _log_tail(self, start: int) -> str:
        with self.log.open("rb") as file:
            file.seek(max(start, self.log.stat().st_size - _LOG_TAIL))
            return file.read().decode(errors="replace").strip()

    def close(self) -> None:
        """End the spawner; it takes its child with it."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
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
