"""The process that starts scripts: it stays for all executions, tells what a start costs, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from prony.app.results import summary_of
from prony.kinds.script.runner.supervisor_process import SupervisorProcess
from servers.process import wait_gone

from .script_jobs import executed, job_of, values

PARENT = "import os, prony\nprony.emit({'parent': os.getppid(), 'group': os.getpgid(0) - os.getpid()})"
WAITS = "import os, time\nprint(os.getpid(), os.getppid(), flush=True)\ntime.sleep(600)"


def test_one_process_starts_all_executions_each_in_a_session_of_its_own(tmp_path: Path) -> None:
    done = executed(job_of(tmp_path, PARENT, {"repeats": 3}), tmp_path / "out")
    (parent,) = set(values(done, "parent"))
    assert parent != os.getpid()
    assert values(done, "group") == [0.0] * 3
    assert wait_gone(int(parent))


def test_what_an_empty_start_costs_is_kept_and_told_of_a_short_command(tmp_path: Path) -> None:
    done = executed(job_of(tmp_path, "", {"repeats": 2}, command="true"), tmp_path / "out")
    for one in done.result.repetitions:
        assert one.empty_start_ms is not None
        assert 0 < one.empty_start_ms < one.phases["measure"].end_ns / 1e6
    told = [one.text for one in summary_of(done.path).verdict.reasons if one.code == "start_cost"]
    assert len(told) == 1
    assert told[0].startswith("Starting and ending an empty program takes ")


def test_a_long_script_is_not_told_what_a_start_costs(tmp_path: Path) -> None:
    done = executed(job_of(tmp_path, "import time\ntime.sleep(3)"), tmp_path / "out")
    assert "start_cost" not in {one.code for one in summary_of(done.path).verdict.reasons}


def test_ignored_signals_are_not_handed_on_and_no_file_is_left_open(tmp_path: Path) -> None:
    shell = "grep SigIgn /proc/self/status; ls /proc/self/fd | wc -l"
    done = executed(job_of(tmp_path, "", command=["sh", "-c", shell]), tmp_path / "out")
    ignored, files = (done.path / "logs" / "run-0000.out").read_text().splitlines()
    assert int(ignored.split()[1], 16) & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1) == 0
    assert int(files) == 4  # its streams, and the folder that it lists


def begin_waiting(folder: Path) -> tuple[subprocess.Popen[bytes], int, int]:
    """Return a runner whose script waits, the script and the script's parent."""
    job = job_of(folder, WAITS)
    (folder / "job.json").write_text(job.model_dump_json())
    command = [sys.executable, "-m", "prony", "exec", str(folder / "job.json"), "--out", str(folder / "out")]
    runner = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    log = folder / "out" / "logs" / "run-0000.out"
    while not (log.exists() and log.read_text().endswith("\n")):
        assert runner.poll() is None
    script, parent = (int(word) for word in log.read_text().split())
    return runner, script, parent


def test_a_supervisor_that_is_killed_takes_the_script_with_it(tmp_path: Path) -> None:
    runner, script, parent = begin_waiting(tmp_path)
    os.kill(parent, signal.SIGKILL)
    assert wait_gone(script)
    assert runner.wait(120) == 1
    assert "supervisor_lost" in (tmp_path / "out" / "result.json").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when another process ended")
def test_a_script_ends_where_its_runner_and_its_supervisor_are_killed_together(tmp_path: Path) -> None:
    runner, script, parent = begin_waiting(tmp_path)
    for pid in (parent, runner.pid):
        os.kill(pid, signal.SIGKILL)
    runner.wait()
    assert wait_gone(script)


def test_a_supervisor_that_was_killed_between_executions_is_replaced(tmp_path: Path) -> None:
    with SupervisorProcess() as supervisor:
        supervisor.wait_ready()
        first = supervisor.pid
        psutil.Process(first).kill()
        while supervisor.listen(60) is not None:
            pass
        supervisor.wait_ready()
        assert supervisor.pid != first
        out, err = tmp_path / "out", tmp_path / "err"
        process = {"argv": ["true"], "environment": {}, "folder": "/", "out": str(out), "err": str(err)}
        supervisor.order([process])
        events: list[str] = []
        while "ended" not in events:
            messages = supervisor.listen(60)
            assert messages is not None
            events += [one["event"] for one in messages]
        assert events == ["started", "exit", "ended"]
