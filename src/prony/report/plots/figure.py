"""Draw figures as inline SVG without pyplot, in the page's style and with reproducible bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec

from prony.errors import CapacityError
from prony.report.escaping import one_line
from prony.report.html.tags import Html, tag

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    Numbers = np.ndarray[Any, np.dtype[Any]]

Asked = ParamSpec("Asked")

# Okabe and Ito's colours, without black and yellow, which vanish on one of the two backgrounds.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
ALARM = "#d55e00"
# Stand-ins that become the page's own colours, so that one drawing suits light, dark and print.
INK, MUTED, LINE = "#010203", "#040506", "#070809"
_PAGE_COLOURS = {INK: "var(--ink)", MUTED: "var(--muted)", LINE: "var(--line)"} | {
    colour: f"var(--c{place})" for place, colour in enumerate(COLOURS)
}
WIDE, NARROW = 7.8, 5.7
_STYLE: dict[Any, Any] = {
    "font.size": 8.5, "axes.labelsize": 8.5, "axes.titlesize": 8.5, "xtick.labelsize": 8.5, "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5, "axes.labelcolor": MUTED, "axes.titlecolor": MUTED, "text.color": INK,
    "xtick.color": INK, "ytick.color": INK, "xtick.major.size": 0, "ytick.major.size": 0,
    "axes.formatter.useoffset": False, "axes.grid": True,
    "grid.color": LINE, "grid.linewidth": 0.6, "axes.axisbelow": True,
    "axes.edgecolor": LINE, "axes.spines.left": False, "axes.spines.right": False, "axes.spines.top": False,
    # A dollar sign in a name begins no formula, and text stays text.
    "text.parse_math": False, "svg.fonttype": "none",
}  # fmt: skip


def check_drawing() -> None:
    """Raise CapacityError, with what to install, where matplotlib is not there."""
    if find_spec("matplotlib") is None:
        hint = "pip install 'prony[report]'; Markdown, JSON and CSV work without it"
        raise CapacityError("plots need matplotlib, which is not installed", hint=hint, code="missing_package")


def load_matplotlib() -> ModuleType:
    """Return matplotlib, or raise as `check_drawing` does."""
    check_drawing()
    return import_module("matplotlib")


def with_style(plot: Callable[Asked, Html | None]) -> Callable[Asked, Html | None]:
    """Draw in this module's style, whatever style the process has, and leave that as it was."""

    @wraps(plot)
    def draw(*args: Asked.args, **kwargs: Asked.kwargs) -> Html | None:
        with load_matplotlib().rc_context(_STYLE):
            return plot(*args, **kwargs)

    return draw


def canvas(width: float, height: float, left: int, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure with stacked panels; sizes are in inches, `left` is the length of the longest label."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    figure.subplots_adjust(left=min(0.5, (0.2 + 0.064 * left) / width), right=1 - 0.15 / width,
                           bottom=0.48 / height, top=1 - 0.25 / height, hspace=0.55)  # fmt: skip
    made = list(figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0])
    for axes in made[:-1]:
        axes.xaxis.set_visible(False)
    return figure, made


def value_axis(
    axes: Axes, values: Any, title: str, *, wide: float = 20.0, on: str = "x", from_zero: bool = False
) -> bool:
    """Name the axis of values; logarithmic where they spread more than `wide` times. Return whether it is."""
    import numpy as np

    found = np.asarray(values, dtype=float)
    is_log = bool(found.size and found.min() > 0 and found.max() / found.min() > wide)
    axis = axes.xaxis if on == "x" else axes.yaxis
    if is_log:
        (axes.set_xscale if on == "x" else axes.set_yscale)("log")
        _plain_log(axis)
    else:
        # Few ticks: each costs more than a millisecond of drawing.
        axes.locator_params(axis="x" if on == "x" else "y", nbins=6)
    if from_zero and not is_log:
        axes.set_xlim(left=0)
    axis.set_label_text(title + (" (logarithmic)" if is_log else ""))
    return is_log


def _plain_log(axis: Axis) -> None:
    """Write a logarithmic axis in plain numbers: 1, 2, 5, 10, 20."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def figure_rows(axes: Axes, labels: Sequence[str]) -> None:
    """Give each row of the plot its name, the first at the top."""
    axes.set_yticks(range(len(labels)), labels=list(labels))
    axes.set_ylim(len(labels) - 0.5, -0.6)
    axes.yaxis.grid(visible=False)


def shorten(label: str, most: int = 40) -> str:
    text = one_line(label)
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most // 2 - 1) :]}"


def dots(axes: Axes, x: Numbers, y: Numbers, *, size: float, colour: str, alpha: float = 1.0) -> None:
    """Draw points as one path of round caps: a tenth of the bytes of one element a point."""
    import numpy as np

    if len(x):
        strokes(axes, np.repeat(np.column_stack([x, y]), 2, axis=0), width=size, colour=colour, alpha=alpha)


def strokes(axes: Axes, ends: Numbers, *, width: float, colour: str, alpha: float = 1.0) -> None:
    """Draw separate straight strokes, two rows of `ends` each, as one path."""
    import numpy as np
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    path = Path(ends, np.tile([Path.MOVETO, Path.LINETO], len(ends) // 2))
    path.should_simplify = False
    patch = PathPatch(path, facecolor="none", edgecolor=colour, linewidth=width, capstyle="round", alpha=alpha)
    # As an artist: a patch would have every segment of its path walked through to find its limits.
    axes.add_artist(patch)
    axes.update_datalim(ends)
    axes.autoscale_view()


def area(axes: Axes, points: Numbers, *, colour: str, alpha: float) -> None:
    """Fill one outline."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    axes.add_artist(PathPatch(Path(points, closed=False), facecolor=colour, linewidth=0, alpha=alpha))
    axes.update_datalim(points)


def spans(axes: Axes, stretches: Iterable[tuple[float, float]], *, alpha: float = 0.16) -> None:
    """Shade stretches of the x axis over the whole height, as one path."""
    import numpy as np
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    corners = [corner for b, e in stretches for corner in ((b, 0), (e, 0), (e, 1), (b, 1), (b, 0))]
    if corners:
        codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
        path = Path(np.array(corners, dtype=float), np.tile(codes, len(corners) // 5))
        axes.add_artist(
            PathPatch(path, facecolor=MUTED, linewidth=0, alpha=alpha, transform=axes.get_xaxis_transform())
        )


def legend(figure: Figure, axes: Axes, columns: int = 6) -> None:
    """Name what is drawn, above everything: so many names in a line."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper left", bbox_to_anchor=(0, 1.0), ncols=columns, frameon=False,
                  handletextpad=0.4, columnspacing=1.4, borderaxespad=0.1, borderpad=0)  # fmt: skip


def svg(figure: Figure, name: str, title: str) -> Html:
    """Return the drawing as an element of the page; `name` keeps its ids apart from those of other drawings."""
    import io
    import warnings

    import matplotlib as mpl

    sink = io.StringIO()
    nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with mpl.rc_context({"svg.hashsalt": name}), warnings.catch_warnings():
        # A glyph that matplotlib's own font lacks is the browser's to draw.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(sink, format="svg", transparent=True, metadata=nothing)
    width, height = figure.get_size_inches() * 72
    return _inline(sink.getvalue(), title, f"0 0 {width:.0f} {height:.0f}")


def _inline(text: str, title: str, view: str) -> Html:
    body = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    body = re.sub(r"<(metadata|title).*?</\1>|<!--.*?-->", "", body, flags=re.DOTALL)
    # Ids that nothing refers to would repeat from drawing to drawing.
    body = re.sub(
        r' id="(?:figure|axes|patch|text|line2d|matplotlib|xtick|ytick|legend|[A-Za-z]+Coll)[\w.]*"', "", body
    )
    body = re.sub(r"font: ([\d.]+)px [^;\"]+", r"font-size: \1px", body)
    # A hundredth of a point is enough for a place, inside a tag; the words between tags are what a reader reads.
    body = re.sub(r"<[^>]*>", lambda found: re.sub(r"(\d\.\d\d)\d+", r"\1", found[0]), body)
    body = body.replace("xlink:href", "href")
    body = re.sub(r"M ([\d.]+ [\d.]+) \nL \1 ", r"M\1h0", body)
    body = re.sub(r"\s*\n\s*", "\n", body)
    for stand_in, colour in _PAGE_COLOURS.items():
        body = body.replace(stand_in, colour)
    return tag("svg", tag("title", title), Html(body), viewBox=view, role="img")
