"""Write an experiment as GitHub-flavoured Markdown: findings, analysis, table with notes, failures, where it ran."""

from __future__ import annotations

import re

from prony.model.comparison import Comparison
from prony.model.experiment_data import AnalysedExperiment, ExperimentData
from prony.model.shown import visible
from prony.report import cost_tables, entry_fields, gate_tables, history_tables, load_tables, matrix_tables
from prony.report.escaping import unknown
from prony.report.findings import findings
from prony.report.markdown.comparison import match_lines
from prony.report.markdown.sweep import sweep_lines
from prony.report.markdown.text import escape_markdown, grid, line
from prony.report.method_sentences import decision_sentences, placement_sentences
from prony.report.notes import instrument, jobs_named, notes
from prony.report.table import Cell, Column, reading_tables, table


def _analysis_lines(analysis: AnalysedExperiment) -> list[str]:
    """Return the sides of a duet, the history, and the numbers along two axes."""
    lines: list[str] = []
    if analysis.comparison is not None:
        lines += _sides(analysis.comparison)
    if analysis.histories:
        shown = history_tables.lines(analysis.histories, analysis.experiment.id)
        lines += ["## In its history", "", *grid(history_tables.HEADINGS, shown)]
        lines += grid(history_tables.CHANGES, history_tables.change_lines(analysis.histories))
    if analysis.matrix is not None:
        lines += [f"## {escape_markdown(matrix_tables.title(analysis.matrix))}", ""]
        lines += grid(matrix_tables.headings(analysis.matrix), matrix_tables.lines(analysis.matrix))
        lines += [escape_markdown(matrix_tables.LEGEND), ""]
    return lines


def _cost_lines(analysis: AnalysedExperiment) -> list[str]:
    """Return what it costs; nothing where nobody knows."""
    rows = cost_tables.lines(analysis)
    if not rows:
        return []
    told = [f"- {escape_markdown(text)}" for text in cost_tables.remarks(analysis)]
    return ["## Cost and energy", "", *grid(matrix_tables.worth_headings(), rows), *told, ""]


def _sides(found: Comparison) -> list[str]:
    lines = ["## The two sides", "", escape_markdown(found.sentence), ""]
    for match in found.matches:
        lines += match_lines(match)
    return [*lines, *(f"- {escape_markdown(text)}" for text in (*found.unmatched, *found.notes)), ""]


_FENCE = "````"


def render(data: ExperimentData) -> str:
    """Return the document."""
    analysis, one = AnalysedExperiment.of(data), data.experiment
    lines = [
        f"# {escape_markdown(one.name)}",
        "",
        escape_markdown(f"{one.id} · {one.created_at:%Y-%m-%d %H:%M} UTC · {one.state}"),
        "",
    ]
    if one.recipe.description:
        lines += [escape_markdown(one.recipe.description), ""]
    lines += ["## What was found", "", *(f"- {escape_markdown(sentence)}" for sentence in findings(data)), ""]
    if data.gates:
        lines += ["## Gates", "", *grid(gate_tables.HEADINGS, gate_tables.lines(data.gates))]
    lines += _analysis_lines(analysis)
    if data.sweep is not None:
        lines += sweep_lines(data.sweep)
    lines += ["## Results", "", *result_lines(data), "", *_reading_lines(data), *_notes(data), ""]
    lines += [*_cost_lines(analysis), *_loads(data)]
    lines += ["## How it was decided", "", *(f"- {escape_markdown(text)}" for text in decision_sentences(analysis)), ""]
    lines += ["## Where and how", "", *_machines(data), "", *_recipe(data)]
    return "\n".join(lines) + "\n"


def result_lines(data: ExperimentData) -> list[str]:
    """Return the table of all jobs."""
    shown = table(data)
    if not shown.rows:
        return ["No job has a result yet."]
    lines = [line([escape_markdown(column.title) for column in shown.columns])]
    lines.append(line(["---:" if column.is_number else "---" for column in shown.columns]))
    lines += [line([_cell(column, row.cells[column.key]) for column in shown.columns]) for row in shown.rows]
    return lines


def _reading_lines(data: ExperimentData) -> list[str]:
    """Return the tables of jobs whose numbers are too many for columns."""
    lines: list[str] = []
    for readings in reading_tables(data.entries):
        rulers = ["---:" if place in readings.numeric else "---" for place in range(len(readings.headings))]
        rows = [line([*map(escape_markdown, row)]) for row in readings.rows]
        lines += [line([*map(escape_markdown, readings.headings)]), line(rulers), *rows, ""]
    return lines


def _loads(data: ExperimentData) -> list[str]:
    """Return what loads have beyond the table: the latencies and figures of each."""
    lines: list[str] = []
    for entry in load_tables.load_entries(data):
        latencies, figures = load_tables.latency_lines(entry), load_tables.figure_lines(entry)
        if latencies or figures:
            lines += [f"## {escape_markdown(entry_fields.label(entry))}", ""]
            lines += grid(["metric, ms", *load_tables.PERCENTILES], latencies)
            lines += grid(["metric", "value", "interval"], figures)
    return lines


def _cell(column: Column, cell: Cell) -> str:
    value = f"**{escape_markdown(cell.text)}**" if column.is_headline and cell.interval else escape_markdown(cell.text)
    return f"{value} {escape_markdown(cell.interval)}".strip()


def _notes(data: ExperimentData) -> list[str]:
    lines = []
    for note in notes(data):
        mark = f"{entry_fields.SYMBOLS[note.grade]} " if note.grade is not None else ""
        jobs = jobs_named(note, len(data.entries))
        lines.append(f"- {mark}{f'**{escape_markdown(jobs)}**: ' if jobs else ''}{escape_markdown(note.text)}")
    return [*lines, f"- Instrument: {escape_markdown(instrument(data.calibration))}"]


def _machines(data: ExperimentData) -> list[str]:
    seen = {entry.environment.device.hardware_id: entry.environment.device for entry in data.entries}
    lines = []
    for device in seen.values():
        cpu, software = device.hardware.cpu, device.software
        cores, memory = unknown(cpu.allowed_cores), unknown(device.hardware.memory_mib)
        about = f"{device.name}: {cpu.model or 'unknown CPU'}, {cores} cores, {memory} MiB"
        system = [f"{software.os} {software.kernel}".strip(), software.python and f"Python {software.python}"]
        lines.append(f"- {escape_markdown(about)}; {escape_markdown(', '.join(filter(None, system)))}")
    models = {one.result.model.sha256: one.result.model.source for one in data.entries if one.result.model is not None}
    lines += [f"- {escape_markdown(text)}" for text in placement_sentences(data)]
    return lines + [f"- {escape_markdown(source)}: `sha256:{digest}`" for digest, source in models.items()]


def _recipe(data: ExperimentData) -> list[str]:
    text = visible(data.experiment.recipe_text or data.experiment.recipe.model_dump_json(indent=2))
    # The fence is longer than any run of backticks that the recipe may hold.
    fence = max([_FENCE, *(run + "`" for run in re.findall(r"`+", text))], key=len)
    return [f"{fence}", *text.rstrip().splitlines(), fence]
