"""A command that is forked is the process that a new interpreter would have been."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from servers.forked import fork_commands, plain_processes
from servers.process import ENGINE_HOST, DieWithParent, is_alive
from servers.waiting import wait_for

PROGRAM = str(Path(__file__).parents[1] / "chaos" / "tell_process.py")
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or "coverage" in sys.modules, reason="commands are not forked here"
)


@pytest.fixture(scope="module", autouse=True)
def forked() -> Iterator[None]:
    """Fork commands here whether or not all tests do."""
    with plain_processes(), fork_commands():
        yield


def tell(*words: str, **options: Any) -> dict[str, Any]:
    done = subprocess.run([sys.executable, PROGRAM, *words], capture_output=True, text=True, check=True, **options)
    assert done.stderr == "said on standard error\n"
    return dict(json.loads(done.stdout))


def test_a_forked_command_sees_what_a_new_interpreter_sees(tmp_path: Path) -> None:
    options: dict[str, Any] = {"cwd": tmp_path, "env": os.environ | {"MARKER": "here"}, "input": "a line\n"}
    forked = tell("read", "two words", **options)
    with plain_processes():
        plain = tell("read", "two words", **options)
    assert (forked.pop("is_forked"), plain.pop("is_forked")) == (True, False)
    assert forked.pop("pid") != plain.pop("pid")
    assert forked == plain
    assert forked["parent"] == os.getpid()
    assert forked["heard"] == "a line\n"


def test_an_engine_of_the_tests_is_found_by_a_forked_command(faulty: Callable[[str], Path], tmp_path: Path) -> None:
    faulty("crash")
    forked = tell(cwd=tmp_path)
    with plain_processes():
        plain = tell(cwd=tmp_path)
    assert (forked["is_forked"], plain["is_forked"]) == (True, False)
    assert forked["path"] == plain["path"]
    done = subprocess.run([sys.executable, "-m", "prony", "engines"], capture_output=True, text=True, check=True)
    assert "faulty" in done.stdout


def test_its_exit_code_and_what_it_said_last_are_known(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, PROGRAM, "exit", "7"], capture_output=True, check=False)
    assert done.returncode == 7
    failed = subprocess.run([sys.executable, PROGRAM, "fail"], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr.endswith("LookupError: ordered to fail\n")
    with (tmp_path / "log").open("w") as log:
        command = [sys.executable, "-m", "prony", "nonsense"]
        assert subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode == 2
    assert "unknown command: 'nonsense'" in (tmp_path / "log").read_text()


def test_a_command_that_fails_ends_whatever_was_imported_before_it() -> None:
    """An engine's library waits for its threads when an interpreter ends, and a fork has none of them."""
    host = [sys.executable, str(ENGINE_HOST), "prony.plugins.engines.onnxruntime:OnnxRuntime"]
    assert subprocess.run(host, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0
    failed = subprocess.run([sys.executable, PROGRAM, "fail"], capture_output=True, check=False, timeout=120)
    assert failed.returncode == 1


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_signal_ends_it(sent: signal.Signals) -> None:
    process = start_waiting()
    process.send_signal(sent)
    assert process.wait(120) == -sent


def test_it_has_the_session_and_the_line_in_proc_that_it_was_started_with() -> None:
    process = start_waiting(start_new_session=True, env=os.environ | {"MARKER": "there"})
    seen = psutil.Process(process.pid)
    assert os.getsid(process.pid) == process.pid
    assert seen.cmdline() == [sys.executable, PROGRAM, "wait"]
    assert seen.environ()["MARKER"] == "there"
    assert "SPACE" not in seen.environ()
    process.kill()
    process.wait(120)


def test_a_loop_of_asyncio_waits_for_it() -> None:
    async def call() -> tuple[int | None, bytes]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(sys.executable, PROGRAM, "exit", "3", stdout=pipe, stderr=pipe)
        said, _ = await process.communicate()
        return process.returncode, said

    code, said = asyncio.run(call())
    assert code == 3
    assert json.loads(said)["is_forked"]


def test_a_loop_that_starts_processes_by_itself_gets_them_forked_too() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def call() -> tuple[list[int | None], bytes]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, PROGRAM, "read", "exit", "3", stdin=pipe, stdout=pipe
        )
        assert process.stdin is not None
        assert process.stdout is not None
        before = process.returncode
        process.stdin.write(b"a line\n")
        await process.stdin.drain()
        said = await process.stdout.readline()
        process.stdin.close()
        return [before, await process.wait(), process.returncode], said

    codes, said = uvloop.run(call())
    assert codes == [None, 3, 3]
    told = json.loads(said)
    assert (told["is_forked"], told["heard"]) == (True, "a line\n")


def test_variables_that_are_read_at_the_start_get_a_new_interpreter(tmp_path: Path) -> None:
    told = tell(env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert not told["is_forked"]
    assert str(tmp_path) in told["path"]


def test_what_is_no_command_of_prony_is_a_new_interpreter() -> None:
    code = "import sys; print('servers.forked' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_folder_that_is_not_there_is_told_as_ever(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        subprocess.run([sys.executable, PROGRAM], cwd=tmp_path / "nowhere", check=False)


def test_it_dies_with_its_parent_where_that_is_asked(tmp_path: Path) -> None:
    """The starter belongs to a parent of its own here, which is killed."""
    program = (
        "import os, subprocess, sys\n"
        "from servers.forked import fork_commands\n"
        "from servers.process import DieWithParent\n"
        "with fork_commands():\n"
        f"    one = subprocess.Popen([sys.executable, {PROGRAM!r}, 'wait'], preexec_fn=DieWithParent(9))\n"
        "    os.read(0, 1)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    parent = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        preexec_fn=DieWithParent(signal.SIGKILL),  # noqa: PLW1509 - it makes one system call
    )  # fmt: skip
    assert parent.stdout is not None
    child = json.loads(parent.stdout.readline())
    assert (child["parent"], child["is_forked"]) == (parent.pid, True)
    starters = psutil.Process(parent.pid).children()
    parent.kill()
    parent.wait(120)
    parent.stdout.close()
    wait_for(lambda: not any(is_alive(one.pid) for one in starters), "the command and its starter to end")


def test_a_signal_that_comes_at_once_is_obeyed_and_the_line_is_its_own() -> None:
    for _ in range(20):
        process = subprocess.Popen(
            [sys.executable, PROGRAM, "wait"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        assert psutil.Process(process.pid).cmdline()[-1] == "wait"
        process.terminate()
        assert process.wait(120) == -signal.SIGTERM


def start_waiting(**options: Any) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, PROGRAM, "wait"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **options
    )
    assert process.stdout is not None
    with process.stdout:
        assert json.loads(process.stdout.readline())["is_forked"]
    return process
