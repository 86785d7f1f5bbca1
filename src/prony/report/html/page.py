"""Assemble a whole HTML page without outside references or scripts."""

from __future__ import annotations

from importlib.resources import files

from prony.report.html.tags import Child, Html, join_html, tag


def whole(title: str, body: Html) -> str:
    """Return the page with its style."""
    return "<!doctype html>\n" + tag("html", _head(title), tag("body", body), lang="en") + "\n"


def page(title: str, eyebrow: str, meta: str, *sections: Child) -> str:
    """Return a page with the usual head and foot around its sections."""
    top = tag("header", tag("p", eyebrow, class_="eyebrow"), tag("h1", title), tag("p", meta, class_="meta"),
              class_="top")  # fmt: skip
    foot = tag("footer", "Written by Prony from stored samples. Every number can be computed again from its result "
               "folder.")  # fmt: skip
    return whole(f"{title}: Prony", join_html((top, tag("main", *sections), foot)))


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
