"""A real agent whose runner plays a recording; called like `prony agent`.

PRONY_TEST_RECORDING is the recorded folder, PRONY_TEST_SECONDS how long each job lasts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from prony.agent import process
from prony.cli.main import main

_RUNNER = Path(__file__).with_name("recorded_runner.py")


def command(files: Sequence[Path], out: Path, calibration_id: str | None = None) -> list[str]:
    recording, seconds = os.environ["PRONY_TEST_RECORDING"], os.environ["PRONY_TEST_SECONDS"]
    return [sys.executable, "-S", "-E", str(_RUNNER), recording, str(files[0]), str(out), seconds]


if __name__ == "__main__":
    process.runner_command = command
    sys.exit(main(["agent", *sys.argv[1:]]))
