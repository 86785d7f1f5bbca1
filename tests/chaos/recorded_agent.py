"""A real agent whose runner plays a recording; called like `prony agent`.

FLEET_RECORDING is the recorded folder (without it the runner is the real one), FLEET_SECONDS how long each job lasts,
FLEET_ENGINE the engine that it offers (null). FLEET_QUIET: the real runner, and nothing else seems to run beside it.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from prony.agent import capabilities, process
from prony.app.execution import runner_command
from prony.cli.main import main
from prony.compat.sark.nouns import word_of
from prony.model.device import EngineReport, EngineUnit
from prony.store.home import Home

_RUNNER = Path(__file__).with_name("recorded_runner.py")


def command(files: Sequence[Path], out: Path, _calibration_id: str | None) -> list[str]:
    recording, seconds = os.environ["FLEET_RECORDING"], os.environ["FLEET_SECONDS"]
    return [sys.executable, "-S", "-E", str(_RUNNER), recording, str(files[0]), str(out), seconds]


def command_for_quiet(files: Sequence[Path], out: Path, calibration_id: str | None) -> list[str]:
    interpreter, *words = runner_command(files, out, calibration_id)
    place = words.index("exec")
    return [interpreter, str(_RUNNER.with_name("quiet_runner.py")), *words[place:]]


def engines(_home: Home) -> list[EngineReport]:
    """Starting every engine of this machine takes seconds, and a killed agent starts often."""
    name = os.environ.get("FLEET_ENGINE", "null")
    unit = EngineUnit(engine=name, unit="cpu", description="", precisions=("none",), seed_name=word_of(name, "cpu"))
    return [EngineReport(name=name, python=sys.executable, state="ready", version="1", units=(unit,))]


if __name__ == "__main__":
    if "FLEET_RECORDING" in os.environ:
        setattr(process, "runner_command", command)  # noqa: B010 - what is replaced is an import of theirs
    if "FLEET_QUIET" in os.environ:
        setattr(process, "runner_command", command_for_quiet)  # noqa: B010
    else:
        setattr(capabilities, "inspect_engines", engines)  # noqa: B010
    if "FLEET_CLOCK" in os.environ:
        runpy.run_path(str(_RUNNER.with_name("clocked.py")))["set_clock"]()
    sys.exit(main(["agent", *sys.argv[1:]]))
