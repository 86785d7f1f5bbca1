"""List the example recipes that come with Prony."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from itertools import takewhile
from pathlib import Path

from prony.errors import NotFoundError
from prony.model.check import Example
from prony.recipe.formats import SUFFIXES, format_of
from prony.recipe.load import loads
from prony.recipe.schema_lookup import nearest_key

_FIRST = "quickstart"


@cache
def examples() -> tuple[Example, ...]:
    """Return every example, the one to begin with first."""
    folder = files("prony.recipe") / "examples"
    found = [_read(Path(one.name), one.read_text(encoding="utf-8")) for one in folder.iterdir() if _is_recipe(one.name)]
    return tuple(sorted(found, key=lambda one: (one.name != _FIRST, one.kind, one.file)))


def example(name: str) -> Example:
    """Return one by its name, or by its file's where several formats have it."""
    for one in examples():
        if name in (one.file, one.name):
            return one
    near = nearest_key(name, [one.name for one in examples()])
    hint = f"did you mean {near}?" if near else "`prony examples` lists them"
    raise NotFoundError(f"no example is called {name!r}", hint=hint)


def _is_recipe(name: str) -> bool:
    return Path(name).suffix in SUFFIXES


def _read(path: Path, text: str) -> Example:
    recipe = loads(text, format_of(path), path.name).recipe
    # The comment at the top says what it is for; an indented line in it is a command to type.
    said = takewhile(lambda line: line.startswith("# ") and not line.startswith("#  "), text.splitlines())
    summary = recipe.description or " ".join(line[2:].strip() for line in said) or recipe.name
    return Example(name=path.stem, file=path.name, kind=recipe.workload.kind, summary=summary, text=text)
