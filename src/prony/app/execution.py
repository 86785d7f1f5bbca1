"""Execute jobs in a `prony exec` child process and pass on its events."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from prony.errors import PronyError
from prony.model.event import Event
from prony.model.job import Job
from prony.runner.child.pipes import wait_readable
from prony.runner.child.wire import MessageWire
from prony.runner.context import interrupt_on_term
from prony.runner.folder import write_noun
from prony.runner.process_group import ask_group_to_stop, group_options, hold_group
from prony.store.home import Home

_STDERR_TAIL = 3000
_ENDING_S = 10
_IDLE_S = 1.0
_SECRETS = ("PRONY_TOKEN", "PRONY_TOKEN_FILE")


class RunnerLostError(PronyError):
    """The runner ended in a way that it never should."""

    code = "runner_lost"


def execute_jobs(
    jobs: Sequence[Job],
    out: Path,
    home: Home,
    *,
    on_event: Callable[[Event], None],
    on_idle: Callable[[], None] = lambda: None,
    calibration_id: str | None = None,
) -> bool:
    """Run jobs together in a runner of their own; return whether they were stopped early. `on_idle` is called about
    once a second in which nothing happens.

    Ctrl-C (or SIGTERM) asks the runner to stop and to keep what was measured; a second one ends it at once. The runner
    dies with this process, however this process dies.
    """
    with tempfile.TemporaryDirectory(prefix="prony-jobs-") as scratch, interrupt_on_term():
        folder = Path(scratch)
        errors = folder / "errors"
        files = [folder / f"{job.id}.json" for job in jobs]
        for file, job in zip(files, jobs, strict=True):
            write_noun(file, job)
        command = runner_command(files, out, calibration_id)
        with errors.open("wb") as stderr:
            runner = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=runner_environment(home),
                **group_options(),
            )
            group = hold_group(runner.pid)
            try:
                stopped = _follow(runner, on_event, on_idle)
            except BaseException:  # whoever shows the events is in trouble: what was measured is kept all the same
                _end(runner)
                raise
            finally:
                if group is not None:
                    runner.wait()
                    group.close()
        if runner.wait() not in (0, 1):
            tail = errors.read_text(errors="replace")[-_STDERR_TAIL:].strip()
            if not stopped:
                said = f"the runner ended with exit code {runner.returncode}: {tail}"
                raise RunnerLostError(said, hint="memory may have run out; `prony doctor` checks this machine")
        return stopped


def runner_command(files: Sequence[Path], out: Path, calibration_id: str | None) -> list[str]:
    """Return how a runner is started that ends with this process."""
    # -P: a file in the current folder is not taken for a module of the same name.
    command = [sys.executable, "-P", "-m", "prony", "exec", "--parent", str(os.getpid()), "--out", str(out)]
    command += ["--calibration", calibration_id] if calibration_id else []
    return [*command, *map(str, files)]


def runner_environment(home: Home) -> dict[str, str]:
    """Return this process's environment with the home in it, and without what lets its owner speak to a server."""
    kept = {name: value for name, value in os.environ.items() if name not in _SECRETS}
    return kept | {"PRONY_HOME": str(home.root)}


def _follow(runner: subprocess.Popen[bytes], on_event: Callable[[Event], None], on_idle: Callable[[], None]) -> bool:
    """Hand on events until the runner has ended; return whether somebody stopped it."""
    if runner.stdout is None:
        raise RunnerLostError("no pipe to the runner")
    wire = MessageWire(runner.stdout.fileno(), -1)
    asked = 0
    while True:
        try:
            if not wait_readable(wire.read_fd, _IDLE_S):
                on_idle()
                continue
            block = wire.receive()
            if block is None:
                return asked > 0
            for message in block:
                on_event(Event.read(message))
        except KeyboardInterrupt:
            asked += 1
            if asked == 1:
                ask_group_to_stop(runner.pid, signal.SIGINT)
            else:
                runner.kill()


def _end(runner: subprocess.Popen[bytes]) -> None:
    """Have the runner stop and wait for it: nobody may touch its folders before."""
    ask_group_to_stop(runner.pid)
    try:
        runner.wait(timeout=_ENDING_S)
    except subprocess.TimeoutExpired:
        runner.kill()
        runner.wait()
