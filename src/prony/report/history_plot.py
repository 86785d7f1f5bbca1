"""A history in, its picture out as SVG, PNG or a page: every result, the levels, the changes where they began."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from prony.model.estimate import Grade
from prony.model.history import History
from prony.report.element import Html, tag
from prony.report.figure import ALARM, COLOURS, INK, MUTED, WIDE, canvas, dots, strokes, styled, svg, value_axis
from prony.report.safe import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {"regression": ALARM, "improvement": COLOURS[2], "drift": COLOURS[1], "environment": COLOURS[3]}
# The stand-ins of the page's colours, where there is no page around the drawing.
_PLAIN = {"var(--ink)": "#1a1a1a", "var(--muted)": "#5f6368", "var(--line)": "#d9dce0"}


def drawn(history: History, suffix: str) -> bytes:
    """Return the picture as a file of this kind has it."""
    if suffix == ".png":
        return _png(history)
    drawing = _svg(history)
    if drawing is None:
        drawing = tag("p", "no result has this number")
    if suffix == ".html":
        return _page(history, drawing).encode()
    text = str(drawing).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    for name, colour in _PLAIN.items():
        text = text.replace(name, colour)
    for place, colour in enumerate(COLOURS):
        text = text.replace(f"var(--c{place})", colour)
    return text.encode()


def _figure(history: History, *, is_page: bool) -> Figure | None:
    import numpy as np

    numbered = [(place, point, point.values[history.metric]) for place, point in enumerate(history.points)
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
    value_axis(axes, [value for _, _, value in numbered], f"{history.metric}, {history.unit}", on="y")
    axes.set_xlabel("results in the order in which they were measured")
    return figure


@styled
def _svg(history: History) -> Html | None:
    figure = _figure(history, is_page=True)
    return None if figure is None else svg(figure, "history", f"history of {one_line(history.series.title)}")


def _png(history: History) -> bytes:
    import io

    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"font.size": 8.5}):
        figure = _figure(history, is_page=False) or Figure(figsize=(WIDE, 2.6))
        sink = io.BytesIO()
        figure.savefig(sink, format="png", dpi=150, metadata={"Software": None})
    return sink.getvalue()


def _page(history: History, drawing: Html) -> str:
    style = files("prony.report").joinpath("page.css").read_text(encoding="utf-8")
    title = one_line(f"{history.series.title}: {history.metric} over time")
    told = [tag("li", one_line(change.sentence)) for change in history.changes] or [tag("li", "No change was found.")]
    head = tag(
        "head", tag("meta", charset="utf-8"),
        Html("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"),
        tag("title", title), Html(f"<style>{style}</style>"),
    )  # fmt: skip
    main = tag("main", tag("p", one_line(history.sentence)), drawing, tag("ul", *told, class_="found"))
    top = tag("header", tag("p", "Prony history", class_="eyebrow"), tag("h1", title), class_="top")
    return "<!doctype html>\n" + tag("html", head, tag("body", top, main), lang="en") + "\n"
