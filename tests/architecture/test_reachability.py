"""No room that nothing opens onto: every module can be reached from where the program begins."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache

import grimp
import pytest

from prony.api import PUBLIC
from prony.cli.main import COMMANDS
from prony.runner import host

from .house import PACKAGE, entry_points, modules, project, walk

# Alembic finds these by their folder and runs them itself.
BY_PATH = ("prony.store.migrations",)
QUOTED = re.compile(r"[\"']prony\b")


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    # An import for the type checker alone opens no door: the module would never run.
    return grimp.build_graph("prony", exclude_type_checking_imports=True)


def beginnings() -> set[str]:
    """Return the modules that somebody other than Prony starts."""
    plugins = [target for kind in project()["entry-points"] for target in entry_points(kind).values()]
    # A kind of workload is a package, whose parts are loaded one by one.
    parts = ("schema", "prepare", "run", "summary", "report")
    plugins += [f"{package}.{part}" for package in entry_points("prony.kinds").values() for part in parts]
    scripts = list(project()["scripts"].values())
    commands = [f"prony.cli.commands.{module}" for module, _ in COMMANDS.values()]
    child = ".".join(host._CHILD_ENTRY.relative_to(PACKAGE.parent).with_suffix("").parts)
    programs = PUBLIC.values()  # what a program calls as `prony.bench` and the like
    return {target.partition(":")[0] for target in (*plugins, *scripts, *programs)} | {
        *commands,
        "prony.__main__",
        child,
    }


@cache
def named_in(module: str) -> set[str]:
    """Return the modules whose whole dotted name stands in this one as text, with or without a name inside of it
    (`module:Class`), to be imported by it."""
    path = modules()[module]
    if not QUOTED.search(path.read_text()):  # to look through every tree takes seconds
        return set()
    constants = (node.value for node in walk(path) if isinstance(node, ast.Constant))
    texts = {text.partition(":")[0] for text in constants if isinstance(text, str)}
    return texts & modules().keys()


def reached(graph: grimp.ImportGraph, starts: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = set(starts)
    while waiting:
        module = waiting.pop()
        found.add(module)
        parents = {module.rpartition(".")[0]} - {""}
        waiting |= (graph.find_modules_directly_imported_by(module) | named_in(module) | parents) - found
    return found


def test_every_module_is_reachable_from_a_face_or_an_entry_point(graph: grimp.ImportGraph) -> None:
    by_path = {module for module in modules() if module.startswith(BY_PATH)}
    assert sorted(modules().keys() - reached(graph, beginnings() | by_path)) == []


def test_a_module_that_nobody_imports_would_be_found(graph: grimp.ImportGraph) -> None:
    assert {"prony.runner.child.spawner", "prony.report.exports.junit"} <= reached(graph, beginnings())
    assert "prony.report.exports.junit" not in reached(graph, ["prony.recipe.load"])


def test_every_command_and_every_entry_point_is_there() -> None:
    assert beginnings() - modules().keys() == set()
