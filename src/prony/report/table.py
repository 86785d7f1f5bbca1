"""Build an experiment's main table for the terminal, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.model.estimate import Estimate, Grade
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.metric import HEADLINE, QUALITY_METRICS, key_of
from prony.model.section import ColumnSpec, SectionTable
from prony.ports.metric_titles import name_without_unit
from prony.ports.workload import shown_kind
from prony.report import compare, entry_fields, number
from prony.report.input_shapes import describe_chosen_shapes, format_chosen_shapes

# The columns of the metrics of the glossary.
_MEASURED: tuple[tuple[str, str, int], ...] = (
    ("inference_ms.p50", "p50", 100),
    ("highest_load", "load held", 95),
    ("e2e_ms.p50", "end to end p50", 100),
    ("e2e_ms.p99", "end to end p99", 69),
    ("inference_ms.p90", "p90", 50),
    ("inference_ms.p95", "p95", 45),
    ("inference_ms.p99", "p99", 60),
    ("throughput_per_s", "throughput", 70),
    ("error_rate", "errors", 68),
    ("goodput_per_s", "goodput", 67),
    ("output_tokens_per_s", "tokens", 66),
    ("ttft_ms.p50", "first token p50", 64),
    ("ttft_ms.p99", "first token p99", 63),
    ("cached_share", "cached", 61),
    ("itl_ms.p50", "between tokens p50", 57),
    ("itl_ms.p99", "between tokens p99", 59),
    ("load_ms", "load", 65),
    ("first_inference_ms", "first", 55),
    ("memory_mib", "memory", 62),
    ("device_ms", "device time", 54),
    ("launch_ms", "launch", 48),
    ("hot_ms", "back to back", 42),
    ("compile_ms", "compile", 41),
    ("energy_j", "energy", 40),
    ("power_w", "power", 28),
    ("cpu_percent", "CPU", 27),
    ("client_cpu_percent", "client CPU", 12),
    ("machine_cpu_percent", "machine CPU", 26),
    ("gpu_percent", "GPU", 29),
    ("gpu_memory_percent", "GPU memory busy", 14),
    ("gpu_tensor_percent", "tensor cores", 24),
    ("gpu_dram_percent", "GPU bandwidth", 23),
    ("vram_run_peak_mib", "GPU memory", 36),
    ("gpu_clock_mhz", "GPU clock", 18),
)
# Shown beside a wall time that is void: what others use of the CPU changes it far less.
_BESIDE_VOID = ("inference_cpu_ms", "CPU time", 96)
_INPUT = "input"
_TOLD = 80  # the importance of what a script tells; each after the first is less important
SHARES = ("error_rate", "goodput_share", "cached_share", "cache_hit_share")
_EFFECTIVE: tuple[tuple[str, str, int], ...] = (
    ("precision", "precision", 58),
    ("threads", "threads", 20),
    ("device", "device", 30),
)


@dataclass(frozen=True)
class Column:
    key: str
    heading: str
    importance: int
    unit: str = ""
    is_number: bool = True
    is_headline: bool = False

    @property
    def keeps_when_void(self) -> bool:
        """Does it say something although the job's result is void?"""
        of_answers = key_of(self.key).metric in QUALITY_METRICS
        return not self.is_number or self.key == _BESIDE_VOID[0] or of_answers

    @property
    def title(self) -> str:
        """The heading with its unit: `p50 ms`."""
        return f"{self.heading} {self.unit}".strip()


@dataclass(frozen=True)
class Cell:
    """What stands in one place of the table; `note` is what a tooltip or a footnote would say of it."""

    text: str = number.DASH
    interval: str = ""
    note: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.interval}".strip()


@dataclass(frozen=True)
class Row:
    entry: Entry
    cells: dict[str, Cell]


@dataclass(frozen=True)
class Table:
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


def table(data: ExperimentData) -> Table:
    """Return a row for each job. A column in which no job has anything is left out."""
    columns = [*_matrix(data), *_input_column(data), Column("verdict", "verdict", 99, is_number=False)]
    cells: dict[str, dict[str, Cell]] = {one.key: _labels(data, one.key) for one in columns}
    headlines = {entry.job.workload.headline for entry in data.entries}
    for key, heading, importance in _list_metrics(data):
        scale, made = _measure_column(data, key)
        if made:
            is_headline = key in headlines
            columns.append(Column(key, heading, importance, unit=scale.symbol, is_headline=is_headline))
            cells[key] = made
        if key in headlines and "ratio" not in cells and (ratios := _ratios(data)):
            columns.append(Column("ratio", "ratio", 75))
            cells["ratio"] = ratios
    for place, key in enumerate(_own_metrics(data)):
        scale, cells[key] = _measure_column(data, key)
        importance = _TOLD if place else 100
        columns.append(Column(key, metric_heading(key), importance - place, unit=scale.symbol, is_headline=place == 0))
    for key, heading, importance in _EFFECTIVE:
        asked, made = cells.get(f"workload.{key}"), _effective(data, key)
        if made and not _says_the_same(asked, made):
            # Two columns of one name would leave open which was asked for and which was done.
            columns.append(Column(key, f"{heading} used" if asked else heading, importance, is_number=key == "threads"))
            cells[key] = made
    rows = [
        Row(entry, {one.key: cells[one.key].get(entry.job.id, Cell()) for one in columns}) for entry in data.entries
    ]
    return Table(tuple(columns), tuple(rows))


def _list_metrics(data: ExperimentData) -> list[tuple[str, str, int]]:
    """Return the columns that may hold numbers, in their order."""
    found: list[tuple[str, str, int]] = [*_kind_columns(data), *_MEASURED]
    if any(entry.summary.verdict.grade is Grade.VOID for entry in data.entries):
        place = next(place for place, (key, _, _) in enumerate(found) if key == HEADLINE)
        found.insert(place + 1, _BESIDE_VOID)
    return found


def _kind_columns(data: ExperimentData) -> tuple[ColumnSpec, ...]:
    """Return the columns that the kinds of these jobs bring."""
    kinds = dict.fromkeys(entry.job.workload.kind for entry in data.entries)
    return tuple(dict.fromkeys(one for kind in kinds for one in shown_kind(kind).report.columns))


def _own_metrics(data: ExperimentData) -> list[str]:
    """Return the metrics that summaries name themselves, by the order of the first that has it."""
    named = {key for key, _, _ in (*_kind_columns(data), *_MEASURED)}
    entries = [one for one in data.entries if not shown_kind(one.job.workload.kind).report.readings]
    keys = dict.fromkeys(key for entry in entries for key in entry_fields.own_keys(entry.summary))
    return [key for key in keys if key not in named and key.removesuffix(".p50") not in named]


def reading_tables(entries: Sequence[Entry]) -> list[SectionTable]:
    """Return the tables of jobs whose numbers are too many for columns, those with the same headings as one."""
    found: dict[tuple[str, ...], SectionTable] = {}
    for entry in entries:
        report = shown_kind(entry.job.workload.kind).report
        sections = report.sections(entry) if report.readings else ()
        for first in (one.tables[0] for one in sections if one.title == report.readings and one.tables):
            before = found.get(first.headings)
            rows = (*(before.rows if before is not None else ()), *first.rows)
            found[first.headings] = first.model_copy(update={"rows": rows})
    return [one.without_empty_columns() for one in found.values()]


def metric_heading(key: str) -> str:
    """Return what a script calls it, without a unit that the column has anyway."""
    parts = key_of(key)
    return f"{name_without_unit(parts.metric)} {parts.operation}".strip()


def _matrix(data: ExperimentData) -> list[Column]:
    paths = entry_fields.cell_axes(data)
    if not paths:
        return [Column("title", "job", 98, is_number=False)]
    return [Column(path, entry_fields.axis(path).replace("_", " "), 98, is_number=False) for path in paths]


def _input_column(data: ExperimentData) -> list[Column]:
    """Return the column of input shapes where a size in one of them was chosen by Prony."""
    is_wanted = any(format_chosen_shapes(entry) for entry in data.entries)
    return [Column(_INPUT, _INPUT, 97, is_number=False)] if is_wanted else []


def _labels(data: ExperimentData, key: str) -> dict[str, Cell]:
    """Return the cells that hold words: the matrix, the title, the input, the verdict."""
    made = {}
    for entry in data.entries:
        verdict = entry.summary.verdict
        if key == "verdict":
            reasons = "; ".join(one.text for one in verdict.reasons)
            made[entry.job.id] = Cell(entry_fields.verdict_text(verdict.grade, entry.ended_early), note=reasons)
        elif key == "title":
            made[entry.job.id] = Cell(entry.summary.title)
        elif key == _INPUT:
            chosen = format_chosen_shapes(entry)
            made[entry.job.id] = Cell(chosen or number.DASH, note=describe_chosen_shapes(entry) or "")
        elif key in entry.job.cell:
            made[entry.job.id] = Cell(str(entry.job.cell[key]))
    return made


def _measure_column(data: ExperimentData, key: str) -> tuple[number.Scale, dict[str, Cell]]:
    """Return one column with a common unit; empty where no job has this number."""
    found = {
        one.job.id: estimate
        for one in data.entries
        if (estimate := entry_fields.find_estimate(one.summary, key)) is not None
    }
    scale = number.common_scale(found.values())
    write = _share_cell if key in SHARES else _cell
    made = {job_id: write(estimate, scale) for job_id, estimate in found.items()}
    if made:
        made |= {one.job.id: _absent(one, key) for one in data.entries if one.job.id not in made}
    return scale, made


def _absent(entry: Entry, key: str) -> Cell:
    """Return why there is no number here."""
    if (absent := entry_fields.find_missing(entry.summary, key)) is not None:
        return Cell(note=number.missing_text(absent))
    if key == entry_fields.headline(entry) and entry_fields.has_failed(entry):
        return Cell(
            "failed",
            note="; ".join(entry_fields.failure_text(why, entry.job.id) for _, why in entry_fields.failures(entry)[:1]),
        )
    return Cell()


def _cell(estimate: Estimate, scale: number.Scale) -> Cell:
    written = number.written(estimate, scale)
    return Cell(written.value, written.interval, number.footnote(estimate))


def _share_cell(estimate: Estimate, _: number.Scale) -> Cell:
    """Return a share as a percentage."""
    between = number.format_share_interval(estimate)
    return Cell(number.format_share(estimate.value), between, number.footnote(estimate))


def _ratios(data: ExperimentData) -> dict[str, Cell]:
    """Return how each job stands against the fastest of its peers; a description, `≈` where intervals overlap."""
    made = {}
    for job_id, ratio in compare.ratios(data.entries).items():
        if ratio.relation == "fastest":
            made[job_id] = Cell("1.0×", note="the best median among jobs that do the same work")
        elif ratio.relation == "slower" and ratio.low is not None and ratio.high is not None:
            ends = f"{number.format_ratio(ratio.low)} to {number.format_ratio(ratio.high)}"
            made[job_id] = Cell(number.format_ratio(ratio.value), note=f"from {ends} from the ends of both intervals")
        elif ratio.relation == "overlap":
            made[job_id] = Cell(
                f"≈{number.format_ratio(ratio.value)}", note="the intervals overlap: not distinguishable"
            )
        else:
            made[job_id] = Cell(number.DASH, note="no intervals, so no comparison")
    return made


def _says_the_same(asked: dict[str, Cell] | None, made: dict[str, Cell]) -> bool:
    return asked is not None and all(asked[job_id].text == cell.text for job_id, cell in made.items())


def _effective(data: ExperimentData, key: str) -> dict[str, Cell]:
    """Return what the engines say they did."""
    made = {}
    for entry in data.entries:
        value = getattr(entry.result.effective, key, None)
        if value not in (None, ""):
            made[entry.job.id] = Cell(str(value), note="as reported by the engine after loading")
    return made
