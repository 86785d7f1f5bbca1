"""Every kind of run says who else was busy on the machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from prony.load.mock.start import MockOptions, serve_mock
from servers.process import DieWithParent

pytestmark = pytest.mark.busy_machine
_BURN = "while True: pass"
_PRIORITY = -10
_LOAD = {"closed": {"concurrency": 2}, "duration": "0.4s", "repeats": 1}


@pytest.fixture
def burner(tmp_path: Path) -> Iterator[str]:
    """Give the name of a program that keeps half of the cores busy, whoever else wants them."""
    # The first run of all has most to import: before the stranger begins, which takes half of the machine.
    subprocess.run([sys.executable, "-m", "prony", "run", "--help"], check=True, capture_output=True)
    path = tmp_path / "busy-stranger"
    path.symlink_to(Path(sys.executable).resolve())
    stop = DieWithParent(signal.SIGKILL)
    command, count = [str(path), "-I", "-c", _BURN], max(1, (os.cpu_count() or 1) // 2)
    processes = [
        subprocess.Popen(command, start_new_session=True, preexec_fn=stop)  # noqa: PLW1509 - a system call only
        for _ in range(count)
    ]
    for one in processes:
        _prefer(one.pid)
    yield path.name
    for one in processes:
        one.kill()
        one.wait()


def _prefer(pid: int) -> None:
    """Have a process go before others, where this user may: Linux weighs sessions first, then what is in each."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, _PRIORITY)
        Path(f"/proc/{pid}/autogroup").write_text(str(_PRIORITY))


def _script(folder: Path) -> dict[str, Any]:
    (folder / "work.py").write_text("import time\ntime.sleep(0.4)\nprint('loss: 1')\n")
    metrics = [{"name": "loss", "pattern": "loss: (\\d+)"}]
    command = [sys.executable, "work.py"]
    return {"workload": {"kind": "script", "command": command, "directory": ".", "metrics": metrics},
            "measure": {"repeats": 1, "warmup": 0}}  # fmt: skip


def _run(folder: Path, sections: dict[str, Any]) -> dict[str, Any]:
    path = folder / "recipe.json"
    path.write_text(json.dumps({"name": "watched"} | sections))
    # A process of its own: whatever this one starts would be the run's own.
    words = [sys.executable, "-m", "prony", "run", str(path), "--json", "--no-report"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    (job,) = json.loads(done.stdout)["jobs"]
    return dict(job)


def _check(job: dict[str, Any], name: str) -> None:
    reasons = {one["code"]: one["text"] for one in job["verdict"]["reasons"]}
    assert name in reasons["contaminated"], reasons
    assert job["verdict"]["grade"] != "valid"


def test_a_load_of_a_server_on_this_machine_names_the_stranger(tmp_path: Path, burner: str) -> None:
    with serve_mock(MockOptions(ttft_ns=5_000_000, itl_ns=0, tokens=1)) as mock:
        work = {"kind": "service", "endpoint": f"{mock.url}/x", "driver": "http"}
        _check(_run(tmp_path, {"workload": work, "load": _LOAD}), burner)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_a_load_of_a_service_that_prony_starts_names_the_stranger(tmp_path: Path, burner: str) -> None:
    work = {"kind": "service", "service": "redis", "driver": "redis"}
    _check(_run(tmp_path, {"workload": work, "load": _LOAD}), burner)


def test_a_script_names_the_stranger(tmp_path: Path, burner: str) -> None:
    _check(_run(tmp_path, _script(tmp_path)), burner)
