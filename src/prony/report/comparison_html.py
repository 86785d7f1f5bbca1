"""A Comparison in, one self-contained HTML page out: the words, the ratios against the threshold, and every number."""

from __future__ import annotations

from importlib.resources import files

from prony.model.comparison import Comparison, Conclusion, Contrast, Match
from prony.report import comparison as shown
from prony.report import figure as draw
from prony.report.element import Html, captioned, folded, grid, joined, scrolling, section, tag

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


def render(comparison: Comparison) -> str:
    """Return the whole page. It refers to nothing outside itself and holds no script."""
    main = tag("main", _found(comparison), _ratios(comparison), *map(_match, comparison.matches), _unlike(comparison))
    top = tag(
        "header", tag("p", "Prony comparison", class_="eyebrow"), tag("h1", shown.title(comparison)),
        tag("p", comparison.sentence, class_="meta"), class_="top",
    )  # fmt: skip
    foot = tag("footer", "Written by Prony. One number a run decides; requests of several runs are never pooled.")
    body = joined((top, main, foot))
    return "<!doctype html>\n" + tag("html", _head(comparison), tag("body", body), lang="en") + "\n"


def _head(comparison: Comparison) -> Html:
    style = files("prony.report").joinpath("page.css").read_text(encoding="utf-8")
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Html("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"),
        tag("title", f"{shown.title(comparison)}: Prony comparison"),
        Html(f"<style>{style}</style>"),
    )


def _found(comparison: Comparison) -> Html:
    forbidden = [shown.difference_text(one) for one in shown.unlike(comparison, allowed=False)]
    warned = [tag("li", tag("b", "Not comparable, compared anyway: "), text) for text in forbidden]
    told = [tag("li", sentence) for sentence in shown.heads(comparison)]
    notes = [tag("li", text) for text in (*comparison.unmatched, *comparison.notes)]
    return section("found", "What was found", tag("ul", *warned, *told, class_="found"), tag("ul", *notes))


def _ratios(comparison: Comparison) -> Html | None:
    drawing = ratio_plot(comparison)
    if drawing is None:
        return None
    about = (
        "Each dot is the ratio of the candidate to the baseline, the bar its interval; the band is what does not "
        "matter. Colours tell the conclusion; right of the line is more, whether that is better or worse."
    )
    return section("ratios", "Ratios", captioned("Candidate by baseline.", about, drawing))


@draw.styled
def ratio_plot(comparison: Comparison) -> Html | None:
    """Draw the ratio of every headline with its interval against the band that does not matter."""
    rows = [
        (match, one) for match in comparison.matches for one in match.contrasts
        if one.role == "headline" and one.effect is not None and one.effect.scale == "ratio"
    ]  # fmt: skip
    if not rows:
        return None
    several = len(comparison.matches) > 1
    labels = [draw.shortened(f"{match.title} · {one.key}" if several else one.key) for match, one in rows]
    panel, (axes,) = draw.canvas(draw.WIDE, 0.75 + 0.32 * len(rows), max(map(len, labels)))
    limit = 1 + comparison.terms.threshold
    axes.axvspan(1 / limit, limit, color=draw.LINE, alpha=0.7, linewidth=0)
    axes.axvline(1.0, color=draw.MUTED, linewidth=0.8)
    ends: list[float] = [1 / limit, limit]
    for place, (_, one) in enumerate(rows):
        ends += _point(axes, one, place)
    draw.rows(axes, labels)
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
    room = (high - low) * 0.05
    return low - room, high + room


def _match(match: Match) -> Html:
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
    how = "They took turns on one machine." if match.interleaved else "They were measured one after the other."
    table = scrolling(tag("table", tag("thead", head), tag("tbody", *body), class_="results"))
    return section(f"job-{match.candidate.job_id}", match.title, table, tag("p", how, class_="muted"))


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
    return section("differences", "What differs", folded(f"{len(rows)} differences", table, is_open=len(rows) < 20))
