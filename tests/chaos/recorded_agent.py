"""A real agent whose runner plays a recording; called like `prony agent`.

PRONY_TEST_RECORDING is the recorded folder, PRONY_TEST_SECONDS how long each job lasts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from prony.agent import abilities, process
from prony.cli.main import main
from prony.model.device import EngineReport, EngineUnit
from prony.store.home import Home

_RUNNER = Path(__file__).with_name("recorded_runner.py")


def command(files: Sequence[Path], out: Path, _calibration_id: str | None) -> list[str]:
    recording, seconds = os.environ["PRONY_TEST_RECORDING"], os.environ["PRONY_TEST_SECONDS"]
    return [sys.executable, "-S", "-E", str(_RUNNER), recording, str(files[0]), str(out), seconds]


def engines(_home: Home) -> list[EngineReport]:
    """Starting every engine of this machine takes seconds, and a killed agent starts often."""
    unit = EngineUnit(engine="null", unit="cpu", description="", precisions=("none",))
    return [EngineReport(name="null", python=sys.executable, state="ready", version="1", units=(unit,))]


if __name__ == "__main__":
    process.runner_command = command
    abilities.inspect_engines = engines
    if "PRONY_TEST_CLOCK" in os.environ:
        from clocked import set_clock

        set_clock()
    sys.exit(main(["agent", *sys.argv[1:]]))
