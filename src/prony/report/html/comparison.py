"""Render a comparison as a self-contained HTML page."""

from __future__ import annotations

from prony.model.comparison import Comparison, Conclusion, Contrast, Match
from prony.ports.metric_titles import metric_title
from prony.report import comparison as shown
from prony.report.html.tags import Html, add_caption, fold, grid, html_page, scrolling, section, tag
from prony.report.plots import figure as draw

_COLOURS = {
    Conclusion.REGRESSION: draw.ALARM,
    Conclusion.IMPROVEMENT: draw.COLOURS[2],
    Conclusion.EQUIVALENT: draw.COLOURS[0],
    Conclusion.INCONCLUSIVE: draw.COLOURS[1],
    Conclusion.DIFFERENT: draw.COLOURS[3],
}
_GRADES = {
    Conclusion.REGRESSION: "void", Conclusion.INCONCLUSIVE: "suspect", Conclusion.INSUFFICIENT: "suspect",
    Conclusion.DIFFERENT: "suspect",
}  # fmt: skip

_ABOUT = (
    "Each dot is the ratio of the candidate to the baseline, the bar its interval; changes inside the band do "
    "not matter. Colours show the "
    "conclusion; right of the line means more, whether that is better or worse."
)


def render(comparison: Comparison) -> str:
    """Return the whole page. It refers to nothing outside itself and holds no script."""
    ratios, jobs = comparison_blocks(comparison)
    is_unlike = bool(shown.unlike(comparison, allowed=False))
    lead = f"Not comparable, compared anyway. {comparison.sentence}" if is_unlike else comparison.sentence
    drawn = section("ratios", "Ratios", ratios) if ratios is not None else None
    return html_page(
        shown.title(comparison), "Prony comparison", lead, _show_findings(comparison), drawn,
        section("jobs", "Each pair", *jobs), section("method", "Method", tag("p", shown.method(comparison))),
        _unlike(comparison),
    )  # fmt: skip


def comparison_blocks(comparison: Comparison) -> tuple[Html | None, list[Html]]:
    """Return the drawing of the ratios, and every number pair by pair."""
    drawing = ratio_plot(comparison)
    drawn = None if drawing is None else add_caption("Candidate by baseline.", _ABOUT, drawing)
    return drawn, [block for match in comparison.matches for block in _match(match)]


def _show_findings(comparison: Comparison) -> Html:
    forbidden = [shown.difference_text(one) for one in shown.unlike(comparison, allowed=False)]
    warned = [tag("li", tag("b", "Not comparable, compared anyway: "), text) for text in forbidden]
    told = [tag("li", sentence) for sentence in shown.heads(comparison)]
    notes = [tag("li", text) for text in (*comparison.unmatched, *comparison.notes)]
    return section("found", "What was found", tag("ul", *warned, *told, class_="found"), tag("ul", *notes))


@draw.with_style
def ratio_plot(comparison: Comparison) -> Html | None:
    """Draw the ratio of every headline with its interval against the band that does not matter."""
    rows = [
        (match, one) for match in comparison.matches for one in match.contrasts
        if one.role == "headline" and one.effect is not None and one.effect.scale == "ratio"
    ]  # fmt: skip
    if not rows:
        return None
    several = len(comparison.matches) > 1
    names = [metric_title(one.key) for _, one in rows]
    labels = [
        draw.shorten(f"{match.title} · {name}" if several else name)
        for (match, _), name in zip(rows, names, strict=True)
    ]
    panel, (axes,) = draw.canvas(draw.WIDE, 0.75 + 0.32 * len(rows), max(map(len, labels)))
    limit = 1 + comparison.terms.threshold
    axes.axvspan(1 / limit, limit, color=draw.LINE, alpha=0.7, linewidth=0)
    axes.axvline(1.0, color=draw.MUTED, linewidth=0.8)
    ends: list[float] = [1 / limit, limit]
    for place, (_, one) in enumerate(rows):
        ends += _point(axes, one, place)
    draw.figure_rows(axes, labels)
    axes.set_xlim(*_around(min(ends), max(ends)))
    draw.value_axis(axes, ends, "candidate / baseline")
    return draw.svg(panel, "ratios", "Ratio of candidate to baseline of each headline metric, with its interval")


def _point(axes: object, one: Contrast, place: int) -> list[float]:
    from matplotlib.axes import Axes

    if not isinstance(axes, Axes) or one.effect is None:
        return []
    colour, effect = _COLOURS.get(one.conclusion, draw.MUTED), one.effect
    found = [effect.value]
    if effect.low is not None and effect.high is not None:
        found += [effect.low, effect.high]
        axes.plot(found[1:], [place, place], color=colour, linewidth=2.2, solid_capstyle="round", alpha=0.6)
    axes.plot(effect.value, place, "o", markersize=6.5, color=colour)
    return found


def _around(low: float, high: float) -> tuple[float, float]:
    """Return the ends with some room beyond them, in proportion: ratios far from 1 are drawn on a logarithmic axis."""
    if low <= 0:
        room = (high - low) * 0.05
        return low - room, high + room
    factor = (high / low) ** 0.05
    return low / factor, high * factor


def _match(match: Match) -> list[Html]:
    head = tag("tr", *(tag("th", one, scope="col", class_=_right(i)) for i, one in enumerate(shown.HEADINGS)))
    body = []
    for line in shown.lines(match):
        one = line.contrast
        said = tag(
            "span", f"{shown.SYMBOLS[one.conclusion]} {one.conclusion}", class_=_GRADES.get(one.conclusion, "valid")
        )
        cells = [tag("td", tag("b", cell) if one.role == "headline" and not i else cell, class_=_right(i))
                 for i, cell in enumerate(line.cells)]  # fmt: skip
        body.append(tag("tr", *cells, tag("td", said), title=one.sentence))
    how = "They ran alternately on one machine." if match.interleaved else "They were measured one after the other."
    table = scrolling(tag("table", tag("thead", head), tag("tbody", *body), class_="results"))
    return [tag("h3", match.title), table, tag("p", how, class_="muted")]


def _right(place: int) -> str | None:
    return "n" if 0 < place < len(shown.HEADINGS) - 1 else None


def _unlike(comparison: Comparison) -> Html | None:
    rows = [
        (one.kind, one.path, one.baseline, one.candidate, "yes" if one.allowed else "no")
        for allowed in (False, True)
        for one in shown.unlike(comparison, allowed=allowed)
    ]
    if not rows:
        return section("differences", "What differs", tag("p", "Nothing that Prony records."))
    table = grid(("kind", "what", "baseline", "candidate", "may differ"), rows)
    return section("differences", "What differs", fold(f"{len(rows)} differences", table, is_open=len(rows) < 20))
