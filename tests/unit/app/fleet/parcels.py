"""Build the tar of a small real result folder, for tests that need hundreds."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from prony.instruments.samples import SAMPLES, TELEMETRY, sample_frame, telemetry_frame
from prony.model.device import Cpu, Device, Environment, Hardware, Software, State
from prony.model.job import Job
from prony.model.result import Failure, Repetition, Result, ResultState
from prony.store import result_tar

AT = datetime(2025, 3, 1, 12, tzinfo=UTC)
SUT = Failure(code="sut", message="the model crashed", whose="sut")
OURS = Failure(code="runner_lost", message="the runner was killed", whose="prony")


@dataclass(frozen=True)
class Parcel:
    content: bytes
    sha256: str

    async def chunks(self, size: int = 4096) -> AsyncIterator[bytes]:
        for begin in range(0, len(self.content), size):
            yield self.content[begin : begin + size]


async def nothing() -> AsyncIterator[bytes]:
    """A body without content."""
    for chunk in list[bytes]():
        yield chunk


async def piece(content: bytes) -> AsyncIterator[bytes]:
    yield content


def packed(job: Job, state: ResultState = ResultState.COMPLETE, **changes: Any) -> Parcel:
    """Return what an agent sends for a job that ended so."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = write(Path(scratch) / "folder", job, state, **changes)
        made = result_tar.pack(folder, Path(scratch) / "tar")
        return Parcel((Path(scratch) / "tar").read_bytes(), made.sha256)


def repacked(folder: Path) -> Parcel:
    """Return a folder, which a test may have spoiled, as it would be sent."""
    with tempfile.TemporaryDirectory() as scratch:
        made = result_tar.pack(folder, Path(scratch) / "tar")
        return Parcel((Path(scratch) / "tar").read_bytes(), made.sha256)


def write(folder: Path, job: Job, state: ResultState = ResultState.COMPLETE, **changes: Any) -> Path:
    """Write a result folder with real Parquet files."""
    folder.mkdir(parents=True)
    values: dict[str, Any] = {
        "prony_version": "0.1.0",
        "job_id": job.id,
        "experiment_id": job.experiment_id,
        "state": state,
        "started_at": AT,
        "ended_at": AT + timedelta(seconds=30),
        "repetitions": (Repetition(index=0, started_at=AT),),
    }
    (folder / "job.json").write_text(job.model_dump_json())
    (folder / "result.json").write_text(Result(**values | changes).model_dump_json())
    for path in _common().iterdir():
        shutil.copy(path, folder)
    return folder


@cache
def _common() -> Path:
    """Return a folder with what is the same in every result; it is small, and stays as long as this process."""
    folder = Path(tempfile.mkdtemp(prefix="prony-test-"))
    hardware = Hardware(cpu=Cpu(architecture="aarch64", logical_cores=2, allowed_cores=2), memory_mib=4096)
    software = Software(os="linux", kernel="6.1", python="3.11.2", prony="0.1.0")
    device = Device(name="bench", hardware_id="hw-1", software_id="sw-1", hardware=hardware, software=software)
    environment = Environment(device=device, state=State(taken_at=AT), clock={"resolution_ns": 1})
    (folder / "environment.json").write_text(environment.model_dump_json())
    begins = list(range(1_000, 11_000, 1_000))
    sample_frame([(0, "measure", begins, [begin + 500 for begin in begins])]).write_parquet(folder / SAMPLES)
    telemetry_frame([(0, 1_000, "host", {"load": 0.5})]).write_parquet(folder / TELEMETRY)
    return folder
