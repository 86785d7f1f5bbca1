"""Print a comparison on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prony.model.comparison import Comparison, Conclusion, Match
from prony.report import comparison as shown
from prony.report.escaping import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as Grid

_STYLES = {
    Conclusion.REGRESSION: "bold #d55e00",
    Conclusion.IMPROVEMENT: "bold #009e73",
    Conclusion.INCONCLUSIVE: "bold #e69f00",
    Conclusion.DIFFERENT: "bold #e69f00",
}
_MOST_SOFTWARE = 6
# Given up one after the other where the terminal is narrow; never the interval.
_SPARED = ("runs", "p", "baseline", "candidate")


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print what differs, the conclusion in words, then every number behind it."""
    from rich.text import Text

    said = _STYLES.get(comparison.conclusion, "bold")
    console.print(Text.assemble((one_line(shown.title(comparison)), "bold")))
    forbidden = shown.unlike(comparison, allowed=False)
    for one in forbidden:
        console.print(Text(f"Not comparable, compared anyway: {one_line(shown.difference_text(one))}", style="#d55e00"))
    console.print(Text(one_line(comparison.sentence), style=said))
    console.print()
    for sentence in shown.heads(comparison):
        console.print(Text(f"· {one_line(sentence)}"))
    left_out: tuple[str, ...] = ()
    for match in comparison.matches:
        console.print()
        console.print(Text(one_line(match.title), style="bold"))
        lacking = _find_left_out(match, console)
        console.print(_grid(match, console, lacking))
        left_out = max(left_out, lacking, key=len)
    console.print()
    if left_out:
        count = f"{len(left_out)} more column{'' if len(left_out) == 1 else 's'} ({', '.join(left_out)})"
        console.print(Text(f"{count}: use a wider terminal to see them", style="dim"))
    for note in (*_software(comparison), *comparison.unmatched, *comparison.notes):
        console.print(Text(f"· {one_line(note)}", style="dim"))


def _software(comparison: Comparison) -> list[str]:
    found = [shown.difference_text(one) for one in shown.unlike(comparison, allowed=True)]
    more = (
        [f"and {len(found) - _MOST_SOFTWARE} more differences: --json lists all"] if len(found) > _MOST_SOFTWARE else []
    )
    return [*(f"differs, {text}" for text in found[:_MOST_SOFTWARE]), *more]


def _find_left_out(match: Match, console: Console) -> tuple[str, ...]:
    """Return the columns that this width has no room for."""
    from rich.measure import Measurement

    wide = console.options.update(max_width=10_000)
    for count in range(len(_SPARED)):
        grid = _grid(match, console, _SPARED[:count])
        if Measurement.get(console, wide, grid).maximum <= console.width:
            return _SPARED[:count]
    return _SPARED


def _grid(match: Match, console: Console, left_out: Sequence[str]) -> Grid:
    from rich import box
    from rich.table import Table as Grid
    from rich.text import Text

    symbols = shown.SYMBOLS if "utf" in console.encoding.lower() else shown.ASCII_SYMBOLS
    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    kept = [place for place, heading in enumerate(shown.HEADINGS) if heading not in left_out]
    for place in kept:
        right = 0 < place < len(shown.HEADINGS) - 1
        grid.add_column(shown.HEADINGS[place], justify="right" if right else "left", no_wrap=True)
    for line in shown.lines(match):
        ending = line.contrast.conclusion
        style = "" if line.contrast.role == "headline" else "dim"
        mark = Text(f"{symbols[ending]} {ending}", style=style or _STYLES.get(ending, ""))
        cells = [*(Text(one, style=style) for one in line.cells), mark]
        grid.add_row(*(cells[place] for place in kept))
    return grid
