"""Plot a history as SVG, PNG or a page: results, levels and changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prony.model.estimate import Grade
from prony.model.history import History
from prony.ports.metric_titles import metric_title
from prony.report.escaping import one_line
from prony.report.html.tags import Html, add_caption, html_page, section, tag
from prony.report.plots.figure import (
    ALARM,
    COLOURS,
    INK,
    MUTED,
    WIDE,
    canvas,
    dots,
    load_matplotlib,
    strokes,
    svg,
    value_axis,
    with_style,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {"regression": ALARM, "improvement": COLOURS[2], "drift": COLOURS[1], "environment": COLOURS[3]}
# The stand-ins of the page's colours, where there is no page around the drawing.
_PLAIN = {"var(--ink)": "#1a1a1a", "var(--muted)": "#5f6368", "var(--line)": "#d9dce0"}


def draw_history(history: History, suffix: str) -> bytes:
    """Return the picture as a file of this kind has it."""
    if suffix == ".png":
        return _png(history)
    drawing = history_svg(history)
    if suffix == ".html":
        return _page(history, drawing).encode()
    # An SVG that says so is still an SVG: a paragraph in its place would be a file that nothing opens.
    text = str(drawing or tag("svg", tag("text", "no result has this metric", y="20"), viewBox="0 0 300 30")).replace(
        "<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1
    )
    for name, colour in _PLAIN.items():
        text = text.replace(name, colour)
    for place, colour in enumerate(COLOURS):
        text = text.replace(f"var(--c{place})", colour)
    return text.encode()


def _figure(history: History, experiment_id: str = "", *, is_page: bool) -> Figure | None:
    import numpy as np
    from matplotlib.ticker import MaxNLocator

    numbered = [(place, point, point.values[history.metric]) for place, point in enumerate(history.points, 1)
                if history.metric in point.values]  # fmt: skip
    if not numbered:
        return None
    figure, (axes,) = canvas(WIDE, 2.6, 8)
    places = {point.job_id: place for place, point, _ in numbered}
    for is_void, colour in ((False, COLOURS[0]), (True, MUTED)):
        some = [(place, value) for place, point, value in numbered if (point.grade is Grade.VOID) is is_void]
        if some:
            x, y = np.array(some, dtype=float).T
            # Strokes without a length are round dots in a page, and nothing in pixels.
            if is_page:
                dots(axes, x, y, size=3.5, colour=colour)
            else:
                axes.scatter(x, y, s=9, color=colour)
    mine = [(place, value) for place, point, value in numbered if point.experiment_id == experiment_id]
    for place, value in mine:
        axes.plot([place], [value], "o", markersize=8.5, markerfacecolor="none", color=INK, markeredgewidth=1.1)
    for one in history.segments:
        if one.first_job_id in places and one.last_job_id in places:
            ends = [
                (places[one.first_job_id] - 0.4, one.level.median),
                (places[one.last_job_id] + 0.4, one.level.median),
            ]
            strokes(axes, np.array(ends, dtype=float), width=1.2, colour=INK)
    for change in history.changes:
        if change.job_id in places and change.state.value != "rejected":
            style = ":" if change.state.value == "suspect" else "-"
            axes.axvline(places[change.job_id] - 0.5, color=_COLOURS[change.kind], linewidth=1.1, linestyle=style)
    value_axis(axes, [value for _, _, value in numbered], f"{metric_title(history.metric)}, {history.unit}", on="y")
    axes.set_xlabel("results, ordered by commit, else by time")
    axes.set_xlim(0.4, len(history.points) + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.margins(y=0.15)
    return figure


@with_style
def history_svg(history: History, experiment_id: str = "") -> Html | None:
    """Draw it for a page, with the results of one experiment ringed; None where no result has the number."""
    figure = _figure(history, experiment_id, is_page=True)
    name = f"history-{history.series.id}"
    return None if figure is None else svg(figure, name, f"history of {one_line(history.series.title)}")


def _png(history: History) -> bytes:
    import io

    mpl = load_matplotlib()
    from matplotlib.figure import Figure

    with mpl.rc_context({"font.size": 8.5}):
        figure = _figure(history, is_page=False) or Figure(figsize=(WIDE, 2.6))
        sink = io.BytesIO()
        figure.savefig(sink, format="png", dpi=150, metadata={"Software": None})
    return sink.getvalue()


def _page(history: History, drawing: Html | None) -> str:
    series = history.series
    said = [history.sentence, *(change.sentence for change in history.changes)]
    told = [tag("li", text) for text in dict.fromkeys(said if history.changes else [*said, "No change was found."])]
    found = section("found", "What was found", tag("ul", *told, class_="found"))
    shown = tag("p", "No result has this metric.")
    if drawing is not None:
        shown = add_caption("Every result.", "Horizontal lines are the levels; a vertical line is a change.", drawing)
    meta = f"{series.id} · {metric_title(history.metric)} · {series.state.value} · {len(history.points)} results"
    over = section("history", "Over time", shown)
    return html_page(f"{series.title} on {series.machine}", "Prony history", meta, found, over)
