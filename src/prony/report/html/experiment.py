"""Write a self-contained HTML page about an experiment: words first, then the table, plots, jobs and method.

Duet, history, costs and matrix have sections that cover several jobs.
"""

from __future__ import annotations

from collections.abc import Sequence

from prony.model.estimate import Grade
from prony.model.experiment_data import AnalysedExperiment, ExperimentData
from prony.ports.workload import Drawings, ReportPage, shown_kind
from prony.report import cost_tables, entry_fields, gate_tables, matrix_tables
from prony.report.findings import findings
from prony.report.html.comparison import comparison_blocks
from prony.report.html.history import history_blocks
from prony.report.html.job import MOST_DRAWN, articles
from prony.report.html.matrix import number_blocks, pareto_block
from prony.report.html.method import method_section
from prony.report.html.tags import Html, add_caption, breakable, grid, join_html, scrolling, section, tag, whole_page
from prony.report.notes import Note, instrument, jobs_named, notes
from prony.report.plots.together import job_plot
from prony.report.table import Column, Row, reading_tables, table


def _comparison_section(analysis: AnalysedExperiment) -> Html | None:
    """Tell how the sides of a duet stand: the ratios first, then every number."""
    found = analysis.comparison
    if found is None or not found.matches:
        return None
    drawing, pairs = comparison_blocks(found)
    notes = tag("ul", *(tag("li", text) for text in (*found.unmatched, *found.notes)))
    return section("sides", "The two sides", tag("p", found.sentence), drawing, *pairs, notes)


def _history_section(analysis: AnalysedExperiment) -> Html | None:
    if not analysis.histories:
        return None
    return section("history", "In its history", *history_blocks(analysis.histories, analysis.experiment.id))


def _cost_section(analysis: AnalysedExperiment) -> Html | None:
    """Tell what it costs and how many watts it takes, where somebody knows."""
    rows = [[line.name, *line.cells] for line in cost_tables.lines(analysis)]
    if not rows:
        return None
    front = pareto_block(analysis.matrix) if analysis.matrix is not None else None
    told = [tag("p", text, class_="muted") for text in cost_tables.remarks(analysis)]
    heads = matrix_tables.worth_headings()
    return section("cost", "Cost and energy", grid(heads, rows, numeric=range(2, len(heads))), *told, front)


def _axes_section(analysis: AnalysedExperiment) -> Html | None:
    """Show the numbers in rows and columns where jobs differ in two things."""
    found = analysis.matrix
    if found is None:
        return None
    return section("axes", matrix_tables.title(found), *number_blocks(found))


def _pictures_section(data: ExperimentData) -> Html | None:
    """Show jobs together along their settings."""
    drawn = [(plot, job_plot(plot, str(place))) for place, plot in enumerate(data.plots)]
    blocks = [add_caption(f"{plot.title}.", " ".join(plot.notes), one) for plot, one in drawn if one is not None]
    return section("together", "Across jobs", *blocks) if blocks else None


def render(data: ExperimentData) -> str:
    """Return the whole page. It refers to nothing outside itself and holds no script."""
    analysis = AnalysedExperiment.of(data)
    drawn = _draw(data)
    parts = [
        ("found", "Found", _show_findings(data)),
        ("gates", "Gates", _gates(data)),
        ("sides", "The two sides", _comparison_section(analysis)),
        ("history", "History", _history_section(analysis)),
        *((one.anchor, one.name, one.body) for one in drawn.pages if one.is_before_results),
        ("results", "Results", _results(data)),
        ("axes", "Two settings", _axes_section(analysis)),
        ("cost", "Cost", _cost_section(analysis)),
        ("together", "Across jobs", _pictures_section(data)),
        *((one.anchor, one.name, one.body) for one in drawn.pages if not one.is_before_results),
        ("jobs", "Jobs", section("jobs", "Each job", *articles(data, drawn.apart))),
        ("method", "Method", method_section(analysis)),
    ]
    links = [tag("a", name, href=f"#{anchor}") for anchor, name, part in parts if part is not None]
    foot = tag("footer", "Written by Prony from the stored samples of this experiment. ",
               "Every number can be recomputed from its result folder.",
               tag("span", "The tables of all runs and other details are in the HTML report: prony report "
                   f"{data.experiment.id} --format html", class_="on-paper"))  # fmt: skip
    body = join_html((_top(data, links), tag("main", *(part for _, _, part in parts)), foot))
    return whole_page(f"{data.experiment.name}: Prony report", body)


def _draw(data: ExperimentData) -> Drawings:
    """Return what each kind of workload draws of its jobs; only the first jobs are drawn one by one."""
    if not data.entries:
        nothing = tag("p", "No plots: no job has a result.")
        return Drawings((ReportPage("plots", "Plots", section("plots", "Plots", nothing)),))
    first = {entry.job.id for entry in data.entries[:MOST_DRAWN]}
    pages: list[ReportPage] = []
    apart: dict[str, Html] = {}
    for kind in dict.fromkeys(entry.job.workload.kind for entry in data.entries):
        mine = [entry for entry in data.entries if entry.job.workload.kind == kind]
        drawn = shown_kind(kind).report.draw(data.model_copy(update={"entries": tuple(mine)}), first)
        pages += drawn.pages
        apart |= drawn.apart
    return Drawings(tuple(pages), apart)


def _top(data: ExperimentData, links: Sequence[Html]) -> Html:
    one = data.experiment
    when = f"{one.created_at:%Y-%m-%d %H:%M} UTC"
    meta = " · ".join([one.id, when, str(one.state)] + ([f"rerun of {one.rerun_of}"] if one.rerun_of else []))
    about = tag("p", one.recipe.description) if one.recipe.description else None
    eyebrow = tag("p", "Prony report", class_="eyebrow")
    return tag(
        "header", eyebrow, tag("h1", one.name), tag("p", meta, class_="meta"), about, tag("nav", *links), class_="top"
    )


def _show_findings(data: ExperimentData) -> Html:
    told = [tag("li", sentence) for sentence in findings(data)]
    return section("found", "What was found", tag("ul", *told, class_="found"))


def _gates(data: ExperimentData) -> Html | None:
    if not data.gates:
        return None
    rows = [[line.name, *line.cells] for line in gate_tables.lines(data.gates)]
    return section("gates", "Gates", grid(gate_tables.HEADINGS, rows))


def _results(data: ExperimentData) -> Html:
    shown = table(data)
    if not shown.rows:
        return section("results", "Results", tag("p", "No job has a result yet."))
    head = tag("tr", *(_heading(column) for column in shown.columns))
    body = [_row(shown.columns, row, place) for place, row in enumerate(shown.rows)]
    shown_table = scrolling(tag("table", tag("thead", head), tag("tbody", *body), class_="results"))
    remarks = tag("ul", *(_note(note, len(shown.rows)) for note in notes(data)), class_="notes")
    line = tag("p", f"Instrument: {instrument(data.calibration)}.", class_="muted")
    about = "Each number is shown above its interval; hover over it for its method and count. "
    if any(column.key == "ratio" for column in shown.columns):
        about += "Ratios compare jobs with the same workload; ≈ means that their intervals overlap."
    tables = reading_tables(data.entries)
    # Where all numbers are readings, the table above has none with an interval.
    caption = tag("p", about.strip(), class_="muted") if any(column.unit for column in shown.columns) else None
    readings = [grid(one.headings, one.rows, numeric=one.numeric) for one in tables]
    title = tag("h3", "Readings") if tables else None
    return section("results", "Results", shown_table, caption, title, *readings, remarks, line)


def _heading(column: Column) -> Html:
    unit = tag("small", f" {column.unit}") if column.unit else None
    return tag("th", column.heading, unit, scope="col", class_="n" if column.is_number else None)


def _row(columns: tuple[Column, ...], row: Row, place: int) -> Html:
    grade = row.entry.summary.verdict.grade
    cells = []
    for column in columns:
        cell = row.cells[column.key]
        text: Html | str = cell.text if column.is_number else breakable(cell.text)
        if column.key == "verdict":
            text = tag("a", tag("span", cell.text, class_=f"verdict {grade}"), href=f"#job-{place}")
        value = tag("b", text) if column.is_headline else text
        interval = tag("span", cell.interval, class_="i") if cell.interval else None
        cells.append(tag("td", value, interval, class_="n" if column.is_number else None, title=cell.note or None))
    return tag("tr", *cells, class_="row-void" if grade is Grade.VOID else None)


def _note(note: Note, job_count: int) -> Html:
    mark = "·" if note.grade is None else entry_fields.SYMBOLS[note.grade]
    style = f"mark {note.grade}" if note.grade else "mark muted"
    jobs = jobs_named(note, job_count)
    return tag("li", tag("span", mark, class_=style), tag("b", f"{jobs}: ") if jobs else None, note.text)
