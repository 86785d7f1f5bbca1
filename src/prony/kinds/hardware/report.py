"""Show what hardware does: every reading with its interval, the published peak, and what was used."""

from __future__ import annotations

import re

from prony.analyse.peaks import find_peak
from prony.kinds.hardware.readings import OF_PEAK
from prony.kinds.hardware.schema import HardwareWorkload
from prony.model.experiment_data import Entry
from prony.model.metric import Key, key_of
from prony.model.section import Fact, Section, SectionTable
from prony.ports.workload import SETTINGS, Report
from prony.report import number

_READINGS = "Readings"
_HEADINGS = ("test", "reading", "value", "unit", "of peak")
_UNIT = re.compile(r"_(gb_s|mb_s|iops|tflops|tops|us)$")


class HardwareReport(Report):
    """Numbers to documents."""

    readings = _READINGS
    example = "hardware.yaml"
    method = (
        "Each run is a fresh process; a reading is the median of its samples, and intervals come from the spread "
        "between runs.",
        "With several shapes, the metric shows the best one; values are never averaged over sizes.",
        "Units are decimal: 1 GB is 10^9 bytes, 1 TFLOP is 10^12 operations.",
    )

    def sections(self, entry: Entry) -> tuple[Section, ...]:
        effective = entry.result.effective
        details = tuple(effective.details.items()) if effective is not None else ()
        used: tuple[Fact, ...] = () if effective is None else (("device", effective.device), *details)
        work = entry.job.work(HardwareWorkload)
        asked = tuple((name, str(value)) for name, value in work.model_dump(exclude_none=True).items() if value != ())
        tables = (
            SectionTable(title="", headings=_HEADINGS, rows=_rows(entry), numeric=(2,)),
            SectionTable(title="Every shape", headings=_HEADINGS, rows=_rows(entry, of_shapes=True), numeric=(2,)),
        )
        return (
            Section(
                title=_READINGS, facts=_sources(entry), tables=tuple(one for one in tables if one.rows), is_open=True
            ),
            Section(title=SETTINGS, facts=(*asked, *used)),
        )

    def programs(self, entry: Entry) -> tuple[Fact, ...]:
        effective = entry.result.effective
        if effective is None or effective.engine == "none":
            return ()
        return ((effective.engine, effective.engine_version),)

    def settings(self, workload: HardwareWorkload) -> dict[str, str]:
        return {"test": workload.test, "engine": workload.tool, "unit": workload.unit if workload.is_of_gpu else "cpu"}


def _rows(entry: Entry, *, of_shapes: bool = False) -> tuple[tuple[str, ...], ...]:
    """Return a row for each reading; those of single shapes stand in a table of their own."""
    keys = {key: key_of(key) for key in entry.summary.runs}
    shown = {key: parts for key, parts in keys.items() if not parts.metric.endswith(OF_PEAK)}
    is_shape = {key: parts.metric.startswith("gemm_") and bool(parts.operation) for key, parts in shown.items()}
    return tuple(_row(entry, key, parts) for key, parts in shown.items() if is_shape[key] == of_shapes)


def _row(entry: Entry, key: str, parts: Key) -> tuple[str, ...]:
    work = entry.job.work(HardwareWorkload)
    estimate = entry.summary.estimates[key]
    written = number.written(estimate, number.Scale(estimate.unit, 1.0))
    peak = None if parts.operation else find_peak(_device(entry), parts.metric)
    share = entry.summary.estimates.get(f"{parts.metric}{OF_PEAK}.p50")
    told = ""
    if peak is not None and share is not None:
        told = f"{share.value * 100:.3g} % of {peak.value:g}{'' if peak.is_verified else ' (not verified)'}"
    name = _UNIT.sub("", parts.metric).replace("_", " ")
    operation = _best(entry, key, parts) if not parts.operation else parts.operation
    return (
        f"{work.test} {work.unit}" if work.is_of_gpu else work.test, f"{name} {operation}".strip(),
        f"{written.value} {written.interval}".strip(), estimate.unit, told,
    )  # fmt: skip


def _best(entry: Entry, key: str, parts: Key) -> str:
    """Return the operation that a metric was taken of, where it has none of its own."""
    runs = entry.summary.runs
    others = {key_of(other): values for other, values in runs.items() if other != key}
    found = (
        other.operation for other, values in others.items() if other.metric == parts.metric and values == runs[key]
    )
    return next(found, "")


def _device(entry: Entry) -> str:
    return entry.result.effective.device if entry.result.effective is not None else ""


def _sources(entry: Entry) -> tuple[Fact, ...]:
    """Return where the peaks come from, or that there are none."""
    metrics = dict.fromkeys(key_of(key).metric for key in entry.summary.runs)
    found = {peak.source for name in metrics if (peak := find_peak(_device(entry), name)) is not None}
    if not entry.job.work(HardwareWorkload).is_of_gpu:
        return ()
    return (("peak by", "; ".join(sorted(found)) or f"no published peak is known for {_device(entry)}"),)


PART = HardwareReport()
