"""Show what was hashed."""

from __future__ import annotations

from prony.model.experiment_data import Entry
from prony.model.section import ColumnSpec, Section
from prony.ports.workload import Report

from .schema import HashingWorkload


class HashingReport(Report):
    """Numbers to documents."""

    columns = (ColumnSpec("hash_ms.p50", "one hash", 100), ColumnSpec("hash_ms.max", "slowest hash", 60))
    method = ("Each run is one hash of the same bytes.",)

    def sections(self, entry: Entry) -> tuple[Section, ...]:
        work = entry.job.work(HashingWorkload)
        return (Section(title="What was hashed", facts=(("algorithm", work.algorithm), ("bytes", str(work.size)))),)

    def same_work(self, entry: Entry) -> str:
        return str(entry.job.work(HashingWorkload).size)


PART = HashingReport()
