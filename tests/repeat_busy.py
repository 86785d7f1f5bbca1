"""Run the tests that wait, take a port or restart a server many times beside processes that never rest.

`make test-busy ROUNDS=20 FILES="tests/unit/load tests/integration/test_server.py"` prints a line for each round and
below it the tests that failed; the exit code is 1 if there was one. `select_waiting.py` chooses among the files' tests.
Those marked `slow` are left out as in `make test`; with `--slow` (`make test-busy SLOW=1`) they are repeated too.
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from servers.process import DieWithParent

HERE = Path(__file__).resolve().parent
LOGS = HERE.parent / "build" / "test-busy"
_FAILED = re.compile(r"^(?:FAILED|ERROR) .*$", re.MULTILINE)
# How pytest, asked for few words, prints a file and how many of its tests it would run.
_COLLECTED = re.compile(r"^(\S+\.py): \d+$", re.MULTILINE)
_PYTEST = (sys.executable, "-m", "pytest")
_CHOICE = ("-p", "no:cacheprovider", "-p", "select_waiting")
# Overrides the choice by marks of pyproject.toml.
_SLOW_TOO = ("-m", "not clusters")
_NO_TESTS = 5


@contextmanager
def keep_busy(count: int) -> Iterator[None]:
    """Have so many processes spin while the block runs."""
    command = [sys.executable, "-c", "while True: pass"]
    stop = DieWithParent(signal.SIGKILL)
    spinning = [subprocess.Popen(command, preexec_fn=stop) for _ in range(count)]  # noqa: PLW1509 - a system call only
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def find_waiting_files(files: Sequence[Path], choice: Sequence[str]) -> list[Path]:
    """Return the files that have a test that waits, so that no worker of a round reads all the others."""
    command = [*_PYTEST, "-n", "0", "--collect-only", "--verbosity=-2", *choice, *map(str, files)]
    done = subprocess.run(command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, _NO_TESTS):
        sys.exit(f"pytest could not collect the tests:\n{done.stdout[-3000:]}")
    return [HERE.parent / name for name in dict.fromkeys(_COLLECTED.findall(done.stdout))]


def run_round(files: Sequence[Path], choice: Sequence[str], workers: int, log: Path) -> tuple[bool, str]:
    """Run the files once, and let pytest write into a log; return whether all passed, and what it said."""
    spread = ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder"] if workers else ["-n", "0"]
    command = [*_PYTEST, "--verbosity=0", *spread, *choice, *map(str, files)]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        done = subprocess.run(command, cwd=HERE.parent, stdout=file, stderr=file, check=False)
    return done.returncode in (0, _NO_TESTS), log.read_text(errors="replace")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="a file or folder of tests; default: all")
    parser.add_argument("--rounds", type=int, default=20, help="how many times (20)")
    parser.add_argument("--busy", type=int, default=2, help="how many processes spin beside them (2)")
    parser.add_argument("--workers", type=int, default=4, help="how many tests run at once (4)")
    parser.add_argument("--slow", action="store_true", help="also the tests that are marked slow")
    options = parser.parse_args()
    choice = (*_CHOICE, *(_SLOW_TOO if options.slow else ()))
    files = find_waiting_files(options.files or [HERE], choice)
    _say(f"{len(files)} files have tests that wait")
    failed = 0
    with keep_busy(options.busy):
        for number in range(1, options.rounds + 1):
            begin = time.monotonic()
            log = LOGS / f"round-{number}.log"
            passed, said = run_round(files, choice, options.workers, log)
            failed += not passed
            last = said.strip().rpartition("\n")[2].strip("= ")
            _say(f"round {number} of {options.rounds}: {last} ({time.monotonic() - begin:.0f} s)")
            if not passed:
                _say("\n".join(_FAILED.findall(said)) or said[-3000:])
                _say(f"all of it: {log.relative_to(HERE.parent)}")
    _say(f"{options.rounds - failed} of {options.rounds} rounds passed")
    return 1 if failed else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
