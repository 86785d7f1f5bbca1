"""What macOS and Windows do otherwise, with stand-ins for their systems' calls."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from prony.agent.process import ThreadedPipe
from prony.instruments.platform_limits import list_limits
from prony.runner import host, process_group
from prony.runner.child.parent_end import can_fork, wait_for_exit, wait_for_handle
from prony.runner.child.pipes import is_pipe_ready, look_until, wait_readable
from prony.runner.child.wire import ChildOrder
from prony.runner.process_group import ExtendedLimits, JobObject, group_options, stop_signals

WINDOWS_LIKE = Path(__file__).with_name("windows_like.py")


class FakeKernel:
    """kernel32 as far as it is called; notes the calls."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {"CreateJobObjectW": 11, "OpenProcess": 22} | answers
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any) -> Any:
            self.calls.append((name, given))
            return self.answers.get(name, 1)

        return call

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def test_runner_agent_and_commands_import_without_what_windows_lacks() -> None:
    done = subprocess.run([sys.executable, str(WINDOWS_LIKE)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") or done.stderr == "\n", done.stderr


def test_a_job_object_ends_what_is_in_it_when_its_handle_is_closed() -> None:
    kernel = FakeKernel()
    job = JobObject(4711, kernel)
    assert kernel.names == [
        "CreateJobObjectW", "OpenProcess", "SetInformationJobObject", "AssignProcessToJobObject", "CloseHandle",
    ]  # fmt: skip
    assert kernel.calls[1][1][2] == 4711
    _, sort, limits, size = kernel.calls[2][1]
    told = ctypes.cast(limits, ctypes.POINTER(ExtendedLimits)).contents
    assert (sort, told.basic.flags, size) == (9, 0x2000, ctypes.sizeof(ExtendedLimits))
    assert kernel.calls[3][1] == (11, 22)
    job.kill()
    job.close()
    job.close()
    assert kernel.calls[-2:] == [("TerminateJobObject", (11, 1)), ("CloseHandle", (11,))]


@pytest.mark.skipif(ctypes.sizeof(ctypes.c_void_p) != 8, reason="the sizes are those of a 64-bit system")
def test_the_limits_of_a_job_object_have_the_size_that_windows_expects() -> None:
    assert ctypes.sizeof(ExtendedLimits) == 144


@pytest.mark.parametrize("refused", ["OpenProcess", "SetInformationJobObject", "AssignProcessToJobObject"])
def test_a_process_that_cannot_be_held_is_an_error(refused: str) -> None:
    with pytest.raises(OSError, match="process 4711"):
        JobObject(4711, FakeKernel(**{refused: 0}))


def test_a_group_begins_and_is_stopped_as_its_system_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    assert group_options("win32") == {"creationflags": 0x200}
    assert group_options("darwin") == group_options("linux") == {"start_new_session": True}
    process_group.ask_group_to_stop(7, signal.SIGINT, "win32")
    process_group.ask_group_to_stop(7, signal.SIGINT, "darwin")
    assert sent == [(7, process_group.CTRL_BREAK), (7, signal.SIGINT)]
    assert stop_signals("linux") == (signal.SIGINT, signal.SIGTERM)
    assert stop_signals("win32") == (signal.SIGINT, signal.SIGTERM, 21)


def test_a_parents_end_is_waited_for_by_kqueue_on_macos() -> None:
    class FakeKqueue:
        asked: list[Any] = []  # noqa: RUF012 - one test has one

        def control(self, changes: list[Any], most: int, timeout: float | None) -> list[Any]:
            self.asked.append((changes[0].ident, most, timeout))
            return changes

        def close(self) -> None:
            self.asked.append("closed")

    wait_for_exit(4711, FakeKqueue)
    assert FakeKqueue.asked == [(4711, 1, None), "closed"]


def test_a_parents_end_is_waited_for_by_its_handle_on_windows() -> None:
    kernel = FakeKernel()
    wait_for_handle(4711, kernel)
    assert kernel.names == ["OpenProcess", "WaitForSingleObject", "CloseHandle"]
    gone = FakeKernel(OpenProcess=0)
    wait_for_handle(4711, gone)
    assert gone.names == ["OpenProcess"]


def test_a_pipe_of_windows_is_looked_into_until_it_has_something() -> None:
    def peek(found: int, is_open: int) -> bool:
        kernel = FakeKernel()

        def look(handle: int, *rest: Any) -> int:
            assert handle == 99
            rest[3]._obj.value = found
            return is_open

        kernel.__dict__["PeekNamedPipe"] = look
        return is_pipe_ready(3, kernel, lambda descriptor: 96 + descriptor)

    assert not peek(0, 1)
    assert peek(5, 1)
    assert peek(0, 0), "its writer is gone: reading tells so"
    looks = iter([False, False, True])
    pauses: list[float] = []
    assert look_until(lambda: next(looks), 60.0, pauses.append)
    assert len(pauses) == 2
    assert not look_until(lambda: False, 0.0)


def test_a_pipe_is_waited_for() -> None:
    reading, writing = os.pipe()
    try:
        assert not wait_readable(reading, 0.0)
        os.write(writing, b"x")
        assert wait_readable(reading, 60.0)
    finally:
        os.close(reading)
        os.close(writing)


def test_an_agent_reads_a_pipe_by_a_thread_where_its_loop_cannot() -> None:
    async def read() -> bytes:
        reading, writing = os.pipe()
        reader = asyncio.StreamReader()
        ThreadedPipe(reading, reader).close()
        os.write(writing, b'{"event": "begin"}\n')
        os.close(writing)
        return await reader.read()

    assert asyncio.run(read()) == b'{"event": "begin"}\n'


def test_an_engine_is_never_forked_on_macos_and_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two orders to one host, whose child believes to be on macOS: each has a process of its own."""
    assert (can_fork("linux"), can_fork("darwin"), can_fork("win32")) == (True, False, False)
    entry = tmp_path / "entry.py"
    entry.write_text(
        "import runpy, sys\nsys.platform = 'darwin'\n"
        f"sys.argv[0] = {str(host._CHILD_ENTRY)!r}\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    monkeypatch.setattr(host, "_CHILD_ENTRY", entry)
    monkeypatch.setattr(host, "can_fork", lambda: False)
    with host.EngineHost("null", sys.executable, tmp_path / "log") as engine:
        spawners = [engine._process.pid]
        for _ in range(2):
            answer = engine.perform(ChildOrder(op="probe"), host.Watch(timeout_ns=120 * 10**9))
            assert answer.done is not None, answer
            assert answer.failure is None
            spawners.append(engine._process.pid)
    assert spawners[0] == spawners[1] != spawners[2]


def test_linux_has_no_limits_and_the_others_say_theirs() -> None:
    assert list_limits("linux") == ()
    assert {one.key for one in list_limits("win32")} > {one.key for one in list_limits("darwin")} - {"timestamps"}
    assert all(one.title and one.text for system in ("darwin", "win32", "freebsd14") for one in list_limits(system))
