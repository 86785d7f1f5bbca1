"""Look whether a hardware test could run here, without measuring."""

from __future__ import annotations

from pathlib import Path

from prony.errors import about_key
from prony.kinds.hardware.child.collective import check_gpu_count
from prony.kinds.hardware.child.disk import choose_file
from prony.kinds.hardware.runner.runner import suite_of
from prony.kinds.hardware.schema import HardwareWorkload
from prony.runner.context import RunContext
from prony.runner.engine_units import require_unit


def try_hardware(work: HardwareWorkload, context: RunContext) -> None:
    """Look for the library, the unit and the folder that a test needs.

    Raises:
        CapacityError: something that it needs is missing here.
    """
    engine, _ = suite_of(work)
    if work.is_of_gpu:
        _check_gpus(work, engine, context.engines)
    elif work.needs_torch:
        require_unit(engine, "cpu", context.engines)
    elif work.test == "disk":
        with about_key("workload.size" if work.path is None else "workload.path"):
            choose_file({"path": work.path, "size": work.size})


def _check_gpus(work: HardwareWorkload, engine: str, engines: Path) -> None:
    is_unit_named = work.unit != HardwareWorkload.model_fields["unit"].default
    with about_key("workload.unit" if is_unit_named else "workload.test"):
        units = require_unit(engine, work.unit, engines)
    if work.test == "gpu-collective":
        with about_key("workload.test"):
            check_gpu_count(sum(one != "cpu" for one in units))
