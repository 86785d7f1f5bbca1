"""On a machine that somebody else uses: who that is, the time that still counts, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.commands import call_prony as prony

pytestmark = pytest.mark.busy_machine
FEW = ("--runs", "3", "--repeats", "3", "--set", "measure.check=false", "--no-report")


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[str]:
    """Keep every CPU busy by programs that are none of ours, and give their name."""
    program = tmp_path / "stranger"
    program.symlink_to("/bin/sh")
    start = f"setsid {program} -c 'while :; do :; done' >/dev/null 2>&1 & echo $!"
    started = [
        subprocess.run(["sh", "-c", start], stdout=subprocess.PIPE, text=True, check=True).stdout
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        yield program.name
    finally:
        for pid in started:
            os.kill(int(pid), signal.SIGKILL)


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="needs the kernel's counters")
def test_a_busy_machine_is_said_at_once_and_void_results_in_the_last_line(stranger: str) -> None:
    done = prony("bench", "zoo:tiny", *FEW, "--wait-quiet", "1s", "--strict", code=1)
    before, _, after = done.stderr.partition("experiment ")
    assert "the machine is busy: other programs use" in before
    assert stranger in before
    assert "still busy after 1 s: measuring anyway" in before
    assert after.count("disturbed: ") == 3  # no replacements: none of them would be clean
    assert done.stderr.splitlines()[-1].startswith("void: tiny: do not use these numbers")
    assert done.stderr.endswith("exit code 1 (--strict)\n")
    assert "✖ void" in done.stdout
    assert "CPU time" in done.stdout
    again = prony("rerun", "last", "--no-report")
    assert again.stderr.splitlines()[-1].endswith("see ✖ for the reason; exit code 0")  # it has no --strict


def test_waiting_for_a_quiet_machine_is_for_runs_here(tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text("name: r\nworkload: {kind: model, model: zoo:tiny, engine: onnxruntime}\n")
    words = ("run", recipe, "--wait-quiet", "5m", "--server", "http://127.0.0.1:9")
    assert "--wait-quiet works only for jobs on this machine" in prony(*words, code=2).stderr
    assert "as in --wait-quiet 5m" in prony("run", recipe, "--wait-quiet", "soon", code=2).stderr
