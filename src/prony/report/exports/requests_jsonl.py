"""Export a load's requests as JSON lines, with every recorded column."""

from __future__ import annotations

from pathlib import Path

from prony.errors import NotFoundError
from prony.ports.exporter import ExportedLoad
from prony.report.plots.load_series import requests_of


def write(load: ExportedLoad, to: Path) -> list[Path]:
    """Write `JOB.requests.jsonl`; instants are nanoseconds of one monotonic clock, unknown is null."""
    entry = load.entry
    import polars as pl

    frame = requests_of(entry)
    if frame is None:
        raise NotFoundError(f"the requests of job {entry.job.id} cannot be read", hint=f"look in {entry.folder}")
    path = to / f"{entry.job.id}.requests.jsonl"
    frame.select(pl.lit(entry.job.id).alias("job_id"), pl.all()).write_ndjson(path)
    return [path]
