"""Find a page of the documentation that `make docs` built into the package."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from prony.errors import NotFoundError

FOLDER = Path(__file__).parent / "help"
HOW_TO_BUILD = "In a checkout, run: make docs. A wheel that was built with mkdocs has the documentation in it."


def is_built() -> bool:
    """Is the documentation in this installation?"""
    return (FOLDER / "index.html").is_file()


def page_names() -> list[str]:
    """Return the names of the pages, as `prony docs` takes them."""
    return sorted(path.stem for path in FOLDER.glob("*.html") if path.stem not in ("index", "404"))


def find_page(topic: str) -> Path:
    """Return the page about a topic; the first one where `topic` is empty."""
    if not is_built():
        raise NotFoundError("the documentation is not in this installation", hint=HOW_TO_BUILD, code="no_documentation")
    names = page_names()
    if topic and topic not in names:
        near = get_close_matches(topic, names, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "prony docs --list lists the pages"
        raise NotFoundError(f"the documentation has no page {topic!r}", hint=hint, code="unknown_topic")
    return FOLDER / f"{topic or 'index'}.html"
