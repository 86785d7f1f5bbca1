"""Show what was hashed."""

from __future__ import annotations

import hashlib

from prony.model.check import Named
from prony.model.experiment_data import Entry
from prony.model.kind_card import FormField, KindForm
from prony.model.picture import StepLine
from prony.model.section import ColumnSpec, Fact, Section, SectionTable
from prony.ports.workload import Report

from .schema import HashingWorkload

FORM = KindForm(
    label="how fast bytes are hashed",
    name="my-hash",
    fields=(
        FormField(path="workload.algorithm", label="Algorithms", value="sha256, md5", takes_several=True),
        FormField(
            path="workload.size", label="Bytes", value="4096", is_text=False, is_choice=True,
            choices=(Named(name="4096", about="a page"), Named(name="1048576", about="a mebibyte")),
        ),
        FormField(path="measure.repeats", label="Runs", value="7", is_text=False),
    ),
)  # fmt: skip


class HashingReport(Report):
    """Numbers to documents."""

    columns = (ColumnSpec("hash_ms.p50", "one hash", 100), ColumnSpec("hash_ms.max", "slowest hash", 60))
    method = ("Each run is one hash of the same bytes.",)
    form = FORM

    def sections(self, entry: Entry) -> tuple[Section, ...]:
        work = entry.job.work(HashingWorkload)
        facts = (("algorithm", work.algorithm), ("bytes", str(work.size)))
        rows = tuple((str(run), f"{ms:.4f}") for run, ms in enumerate(entry.summary.runs["hash_ms.p50"]))
        table = SectionTable(title="Every hash", headings=("run", "ms"), rows=rows, numeric=(0, 1))
        return (Section(title="What was hashed", facts=facts, tables=(table,)),)

    def programs(self, entry: Entry) -> tuple[Fact, ...]:
        algorithm = hashlib.new(entry.job.work(HashingWorkload).algorithm)
        return (("Digest", f"{algorithm.digest_size * 8} bits"),)

    def curves(self, entry: Entry) -> list[StepLine]:
        taken = entry.summary.runs["hash_ms.p50"]
        return [
            StepLine(
                metric="hash_ms", unit="ms", labels={}, rank=None, repetition=0, steps=tuple(range(len(taken))),
                values=taken, total=len(taken),
            )
        ]  # fmt: skip

    def same_work(self, entry: Entry) -> str:
        return str(entry.job.work(HashingWorkload).size)


PART = HashingReport()
