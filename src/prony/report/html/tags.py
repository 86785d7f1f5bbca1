"""Build HTML elements and whole pages without outside references or scripts; all text that is not markup is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from prony.model.shown import visible


class Html(str):
    """Text that is markup by intent. Only this module and the plots make it; all other text is escaped."""

    __slots__ = ()


Child = str | None

_INNER_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[_/])")
_LONG_CELL = 80
_VOID = frozenset({"meta", "br", "hr", "col"})


def tag(name: str, /, *children: Child, **attributes: str | bool | None) -> Html:
    """Return one element. A trailing underscore frees an attribute from Python's own words: `class_`, `for_`."""
    opening = name + "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{opening}>")
    return Html(f"<{opening}>{join_html(children)}</{name}>")


def join_html(children: Iterable[Child]) -> Html:
    """Return all children in a row; None is nothing."""
    return Html("".join(_safe(child) for child in children if child is not None))


def breakable(text: str) -> Html:
    """Return a text in which a line may end within a long word, where another word begins: CPU, Execution, Provider."""
    return Html("<wbr>".join(_safe(piece) for piece in _INNER_WORD.split(text)))


def _safe(child: str) -> str:
    return child if isinstance(child, Html) else escape(visible(child))


def _attribute(key: str, value: str | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(visible(value))}"'


def section(anchor: str, heading: str, *children: Child) -> Html:
    return tag("section", tag("h2", heading), *children, id=anchor)


def fold(summary: str, *children: Child, is_open: bool = False) -> Html:
    """Return a block that opens on a click, without any script."""
    return tag("details", tag("summary", summary), *children, open=is_open)


def grid(headings: Sequence[str], rows: Iterable[Sequence[Child]], *, numeric: Sequence[int] = ()) -> Html:
    """Return a table that scrolls by itself where the page is narrow; `numeric` columns are set to the right."""
    right = set(numeric)
    head = tag(
        "tr", *(tag("th", name, scope="col", class_="n" if i in right else None) for i, name in enumerate(headings))
    )
    body = [
        tag("tr", *(tag("td", cell, class_="n" if i in right else _cell_style(cell)) for i, cell in enumerate(row)))
        for row in rows
    ]
    return scrolling(tag("table", tag("thead", head), tag("tbody", *body)))


def _cell_style(cell: Child) -> str | None:
    """Give long texts room of their own, where a narrow page would squeeze them to a word a line."""
    is_text = isinstance(cell, str) and not isinstance(cell, Html)
    return "long" if is_text and len(cell or "") > _LONG_CELL else None


def scrolling(child: Child) -> Html:
    return tag("div", child, class_="scroll", tabindex="0")


def pairs(items: Iterable[tuple[str, Child]]) -> Html:
    """Return names and values, as a list of definitions; a value that is unknown is said to be."""
    inner = [tag("div", tag("dt", name), tag("dd", "unknown" if value is None else value)) for name, value in items]
    return tag("dl", *inner)


def add_caption(title: str, text: str, drawing: Html) -> Html:
    """Return one drawing with its caption above it, where the eye begins."""
    return tag("figure", tag("figcaption", tag("b", title), f" {text}"), tag("div", drawing, class_="plot"))


def whole_page(title: str, body: Html) -> str:
    """Return the page with its style."""
    return "<!doctype html>\n" + tag("html", _head(title), tag("body", body), lang="en") + "\n"


def html_page(title: str, eyebrow: str, meta: str, *sections: Child) -> str:
    """Return a page with the usual head and foot around its sections."""
    top = tag("header", tag("p", eyebrow, class_="eyebrow"), tag("h1", title), tag("p", meta, class_="meta"),
              class_="top")  # fmt: skip
    foot = tag("footer", "Written by Prony from stored samples. Every number can be recomputed "
               "from its result folder.")  # fmt: skip
    return whole_page(f"{title}: Prony", join_html((top, tag("main", *sections), foot)))


def _head(title: str) -> Html:
    style = files("prony.report").joinpath("page.css").read_text(encoding="utf-8")
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        # Even if something slipped through the escaping, the browser would neither run it nor fetch it.
        Html("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"),
        tag("title", title),
        Html(f"<style>{style}</style>"),
    )
