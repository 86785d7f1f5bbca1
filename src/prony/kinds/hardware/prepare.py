"""Say what a hardware test needs of a device, and make its path absolute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import PronyError
from prony.kinds.hardware.schema import HardwareWorkload
from prony.model.assumption import Assumption
from prony.model.job import Job
from prony.ports.unit_names import split_unit
from prony.ports.workload import Needs, Prepare

if TYPE_CHECKING:
    from prony.runner.context import RunContext


# Which key an error is about, by its code; the others are about the test itself.
_KEYS = {
    "no_directory": "path", "disk_full": "path", "unit_unavailable": "unit", "engine_missing": "library",
    "engine_broken": "library", "engine_unsupported": "library",
}  # fmt: skip


class HardwarePrepare(Prepare):
    """Before a test runs."""

    def needs(self, workload: HardwareWorkload) -> Needs:
        if workload.is_of_gpu:
            unit, card = split_unit(workload.unit)
            return {"engine": "torch", "unit": unit, "card": card}
        return {"engine": "torch", "unit": "cpu"} if workload.needs_torch else {}

    def make_paths_absolute(self, job: Job, base: Path) -> Job:
        work = job.work(HardwareWorkload)
        if work.path is None:
            return job
        path = str((base / Path(work.path).expanduser()).absolute())
        return job.model_copy(update={"workload": work.model_copy(update={"path": path})})

    def try_once(self, job: Job, context: RunContext) -> tuple[Assumption, ...]:
        """Look for the library, the unit and the folder. Nothing is measured."""
        from prony.kinds.hardware.runner.trial import try_hardware

        try_hardware(job.work(HardwareWorkload), context)
        return ()

    def key_behind(self, error: PronyError) -> str:
        return f"workload.{_KEYS.get(error.code, 'test')}"


PART = HardwarePrepare()
