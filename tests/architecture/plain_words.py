"""Sentences that users meet: in the documentation, in the strings of the package and on the web pages."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median

from .house import ROOT, files, modules, walk

LISTS = Path(__file__).with_name("plain_words.toml")
# A page reads well where half of its sentences are shorter than this.
MOST_WORDS = 16
# People read the documentation where it is short: this many words, without the reference.
MOST_WORDS_IN_ALL = 40_000
LOOKED_UP = ("commands", "recipe", "metrics", "errors", "settings", "api", "troubleshoot")
_HIDDEN = re.compile(
    r"^( *)```.*?^\1```$|<!--.*?-->|^#[^\n]*$|^ *\|[^\n]*$|!\[[^\]]*\]\([^)]*\)", re.DOTALL | re.MULTILINE
)
_COMMENT = re.compile(r"^\s*//[^\n]*$|/\*.*?\*/", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)")
_ITEM = re.compile(r"^ *(?:[-*]|\d+\.) ", re.MULTILINE)
_END = re.compile(r"(?<=[.!?])[*)\"]*\s+(?=[\"(*]*[A-Z0-9`])")


@cache
def lists() -> dict[str, list[str]]:
    """Return the banned phrases, and by file what is still let through."""
    found: dict[str, list[str]] = tomllib.loads(LISTS.read_text())
    return found


def documents() -> list[Path]:
    """Return the pages for users; decisions and the list of changes tell of the past in the words of their time."""
    kept = {ROOT / "README.md", ROOT / "CONTRIBUTING.md"}
    return [path for path in files() if path.suffix == ".md" and (path in kept or path.parent == ROOT / "docs")]


def texts() -> Iterator[tuple[str, str]]:
    """Yield the name of every file that holds sentences for users, with those sentences on one line."""
    for path in documents():
        yield _name(path), _flat(path.read_text())
    for path in modules().values():
        yield _name(path), _flat("\n".join(_strings(path)))
    for path in (ROOT / "recipes").glob("*.yaml"):
        yield _name(path), _flat(path.read_text())
    for path in files():
        if path.is_relative_to(ROOT / "ui" / "src") and path.suffix in (".ts", ".tsx") and ".test." not in path.name:
            yield _name(path), _flat(_COMMENT.sub("", path.read_text()))


def banned_uses() -> set[tuple[str, str]]:
    """Return every file that holds a banned phrase, with the phrase."""
    return {(name, phrase) for name, text in texts() for phrase in lists()["banned"] if phrase in text}


def long_pages() -> set[str]:
    """Return the pages whose sentences are too long at the median."""
    return {_name(path) for path in documents() if median_words(path.read_text()) >= MOST_WORDS}


def count_words() -> int:
    """Return how many words the pages under docs/ have, without those that are looked up in tables of the code.

    A number is no word: pages of figures have thousands.
    """
    told = [path.read_text() for path in documents() if path.parent == ROOT / "docs" and path.stem not in LOOKED_UP]
    return sum(len(re.findall(r"\S*[^\W\d_]\S*", text)) for text in told)


def median_words(page: str) -> float:
    """Return how many words the sentences of a page have at the median; code counts as one word."""
    counts = [count for sentence in _sentences(page) if (count := len(re.findall(r"\S*\w\S*", sentence))) > 2]
    return median(counts) if counts else 0


def _sentences(page: str) -> Iterator[str]:
    """Yield the sentences of running text: no code, tables, headings and pictures; a list item begins a new one."""
    text = _LINK.sub(r"\1", _ITEM.sub("\n\n", _HIDDEN.sub("\n", page)))
    text = re.sub(r"`[^`]*`", "code", text)
    for paragraph in re.split(r"\n\s*\n", text):
        yield from _END.split(" ".join(paragraph.split()))


def _strings(module: Path) -> Iterator[str]:
    """Yield the strings of a module, without docstrings; but that of a command's `arguments` is its help."""
    hidden = set()
    for node in walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and getattr(node, "name", "") != "arguments":
                hidden.add(first.value)
        elif isinstance(node, ast.JoinedStr):
            hidden.update(node.values)
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in hidden:
            yield node.value


def _flat(text: str) -> str:
    return " ".join(text.lower().split())


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def shrink() -> None:
    """Write the lists again, without the exceptions that nothing needs any more."""
    uses = sorted(f"{name}: {phrase}" for name, phrase in banned_uses())
    head = LISTS.read_text().partition("\nexceptions = ")[0].rstrip("\n")
    before = lists()
    kept = {
        "exceptions": [one for one in uses if one in before.get("exceptions", uses)],
        "long_pages": [one for one in sorted(long_pages()) if one in before.get("long_pages", [one])],
    }
    tables = [f"{key} = [\n" + "".join(f'  "{one}",\n' for one in found) + "]\n" for key, found in kept.items()]
    LISTS.write_text("\n".join([head, *tables]))


if __name__ == "__main__":
    shrink()
