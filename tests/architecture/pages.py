"""List what the web pages request of the server, by method and address."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

from .house import PACKAGE

SOURCES = PACKAGE.parents[1] / "ui" / "src"
MAIN = SOURCES / "main.tsx"
_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", re.DOTALL)
_IMPORT = re.compile(r"""(?:from|import)\s*\(?\s*["']([./@][^"']*)["']""")
_EXPORT = re.compile(r"^export (?:async )?(?:function\*?|const|class) (\w+)", re.MULTILINE)
# `api.POST("/api/v1/jobs/{job_id}/cancel", ...)`, and addresses that are put together for a stream or a download.
_CALL = re.compile(r"""\bapi\.(GET|POST|PUT|PATCH|DELETE)\(\s*["`](/api/v1/[^"`]*)["`]""")
_ADDRESS = re.compile(r"""["`](/api/v1/[^"`?]*)""")
_WORD = re.compile(r"\w+")
_HOLE = re.compile(r"\$?\{(?:[^{}]|\{[^{}]*\})*\}")


@cache
def reached() -> dict[Path, str]:
    """Return the modules that the application leads to, without their comments; no test is among them."""
    found: dict[Path, str] = {}
    waiting = [MAIN]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found[path] = _COMMENT.sub("", path.read_text(encoding="utf-8"))
        waiting += [module for name in _IMPORT.findall(found[path]) if (module := _module(path, name)) is not None]
    return found


def _module(of: Path, name: str) -> Path | None:
    place = SOURCES / name.removeprefix("@/") if name.startswith("@/") else of.parent / name
    ways = (place.with_name(place.name + ending) for ending in (".ts", ".tsx"))
    return next((way.resolve() for way in ways if way.is_file()), None)


def unused() -> set[str]:
    """Return what modules offer and nobody takes: what is asked in it is never asked."""
    texts = reached()
    counts = Counter(word for text in texts.values() for word in _WORD.findall(text))
    return {
        f"{path.relative_to(SOURCES)}: {name}"
        for path, text in texts.items()
        for name in _EXPORT.findall(text)
        if counts[name] == 1
    }


@cache
def asked() -> set[tuple[str, str]]:
    """Return the method and the address, with holes for what differs, of all that the pages ask."""
    found: set[tuple[str, str]] = set()
    for text in reached().values():
        calls = set(_CALL.findall(text))
        named = {address for _, address in calls}
        found |= {(method, holes(address)) for method, address in calls}
        found |= {("GET", holes(address)) for address in _ADDRESS.findall(text) if address not in named}
    return found


def holes(address: str) -> str:
    return _HOLE.sub("{}", address)
