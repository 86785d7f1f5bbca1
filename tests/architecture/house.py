"""The repository's modules, files and pages, for the tests of its architecture."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tools.sources import parse_source, statements

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "prony"


@cache
def modules() -> dict[str, Path]:
    """Return every module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    return parse_source(path.read_text())


@cache
def walk(path: Path) -> tuple[ast.AST, ...]:
    """Return every node of a module, a parent before its children; several tests walk through the same modules."""
    return tuple(ast.walk(tree(path)))


def nodes(*words: str) -> Iterator[ast.AST]:
    """Yield every node of the modules that hold one of these words: to walk through all takes seconds."""
    for path in modules().values():
        if any(word in path.read_text() for word in words):
            yield from walk(path)


def package_statements() -> Iterator[tuple[Path, ast.AST]]:
    """Yield every statement of every module, with the file that it stands in."""
    for path in modules().values():
        for node in statements(tree(path)):
            yield path, node


@cache
def entry_points(kind: str) -> dict[str, str]:
    """Return the plug-ins of one kind that this project declares, each as `module:attribute`."""
    declared: dict[str, str] = project()["entry-points"][kind]
    return declared


@cache
def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


@cache
def files() -> tuple[Path, ...]:
    """Return every file that belongs to the repository, those not yet committed with them."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    return tuple(ROOT / name for name in names if name and (ROOT / name).is_file())


def pages() -> tuple[Path, ...]:
    return tuple(path for path in files() if path.suffix == ".md")


@cache
def page(name: str) -> str:
    """Return the text of one page under docs/."""
    return (ROOT / "docs" / f"{name}.md").read_text()


def section(text: str, heading: str) -> str:
    """Return what stands under a heading, down to the next one of the same level or above."""
    level = len(heading) - len(heading.lstrip("#"))
    found = re.search(rf"^{re.escape(heading)}$(.*?)(?=^#{{1,{level}}} |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found is not None, f"no heading {heading!r}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """Return the cells of every table row, without the lines that only draw the table."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines]
    return [row for row in cells if not set("".join(row)) <= set("-: ")]


def drawn_layers() -> list[str]:
    """Return the layers that the architecture page draws, from the top down, as `model | stats`."""
    block = section(page("architecture"), "## Packages and layers").partition("```text\n")[2].partition("```")[0]
    # A line that begins with a bar continues the layer above; what a package holds follows its name.
    names = re.findall(r"^(  \| \w+|\w+(?: \| \w+)*) ", block, re.MULTILINE)
    return "\n".join(names).replace("\n  |", " |").splitlines()
