"""Nothing outside `kinds/` names a kind of workload, each kind has the same files, and a runner loads no reports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tools.sources import parse_source, statements

from .house import PACKAGE, entry_points, modules, tree

KINDS = entry_points("prony.kinds")
PARTS = ("schema", "prepare", "run", "summary", "report")
# Formats of other programs are each of one kind of workload; they are read and written there, and nowhere else.
OF_OTHER_PROGRAMS = ("sark", "ai_factory", "benchmark_ai", "compat")
# What a module that names a kind holds in any case; to read the others' syntax would take seconds.
MENTIONED = re.compile(rf"prony\.kinds|Workload\b|\bworkload_kind\b|\.kind\b|\bkind=|[\"'](?:{'|'.join(KINDS)})[\"']")
EXCEPTIONS = {
    # What a person types writes a recipe of one kind; whoever runs, reports or stores it does not ask which.
    "prony.cli.commands.load": "prony load makes a recipe of a load from its options",
    "prony.app.command_recipe": "prony bench --command makes a recipe of a command",
    "prony.app.hardware_recipe": "prony hardware makes a recipe of its options",
    "prony.app.llm_recipe": "prony llm makes a recipe of its options",
    "prony.app.model_recipe": "prony bench makes a recipe of a model",
    "prony.api.function_recipe": "prony.bench makes a recipe of a function",
    "prony.api.pytest_recipe": "the pytest plug-in makes a recipe of a session's tests",
    "prony.model.place": "a demand that was stored without a kind is of the kind that was there first",
}


def is_outside(module: str) -> bool:
    """Is it a module that may know no kind?"""
    parts = module.split(".")
    is_of_others = any(part.startswith(OF_OTHER_PROGRAMS) for part in parts)
    return parts[1:2] != ["kinds"] and not is_of_others and module not in EXCEPTIONS


def is_kind(node: ast.AST) -> bool:
    """Does an expression ask a workload for its kind? Alarms, events, gates and numpy's dtypes have kinds too."""
    if isinstance(node, ast.Name):
        return node.id == "workload_kind"
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "kind"
        and ("workload" in ast.unparse(node.value) or ast.unparse(node.value) in ("work", "demand"))
    )


def named_kinds(text: str) -> list[str]:
    """Return the places in which a module names a kind of workload, or decides by it."""
    schemas = {f"{name.capitalize()}Workload" for name in KINDS}
    told = []
    for node in ast.walk(parse_source(text)) if MENTIONED.search(text) else ():
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("prony.kinds"):
            told.append(f"{node.lineno}: imports {node.module}")
        elif isinstance(node, ast.Import) and any(one.name.startswith("prony.kinds") for one in node.names):
            told.append(f"{node.lineno}: imports a kind")
        elif isinstance(node, ast.Name | ast.Attribute) and getattr(node, "id", getattr(node, "attr", "")) in schemas:
            told.append(f"{node.lineno}: {ast.unparse(node)}")
        elif isinstance(node, ast.Compare) and any(map(is_kind, (node.left, *node.comparators))):
            constants = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
            told += [f"{node.lineno}: {ast.unparse(node)}"] if constants & set(KINDS) else []
        elif isinstance(node, ast.Subscript | ast.Call) and any(map(is_kind, ast.iter_child_nodes(node))):
            told += [f"{node.lineno}: {ast.unparse(node)}"] if isinstance(node, ast.Subscript) else []
        elif isinstance(node, ast.Dict):
            told += [f"{node.lineno}: {what}" for what in _kinds_in_dict(node)]
        elif isinstance(node, ast.Tuple | ast.List | ast.Set) and set(KINDS) <= _texts(node.elts):
            told.append(f"{node.lineno}: {ast.unparse(node)}")
        elif (
            isinstance(node, ast.keyword) and node.arg == "kind" and ast.unparse(node.value) in ("'model'", "'script'")
        ):
            told.append(f"{node.value.lineno}: kind={ast.unparse(node.value)}")
    return told


def _kinds_in_dict(node: ast.Dict) -> list[str]:
    """Return what a dict says of kinds: a table by kind, or the recipe of one: `{"kind": "llm", ...}`."""
    found = ["a table by kind"] if len(_texts(node.keys) & set(KINDS)) == len(node.keys) > 1 else []
    kinds = [value for key, value in zip(node.keys, node.values, strict=True) if _texts([key]) == {"kind"}]
    return found + [f"a recipe of the kind {kind}" for kind in _texts(kinds) & set(KINDS)]


def _texts(found: Sequence[ast.expr | None]) -> set[object]:
    return {one.value for one in found if isinstance(one, ast.Constant)}


def test_nothing_outside_its_folder_names_a_kind() -> None:
    found = {name: named_kinds(path.read_text()) for name, path in modules().items() if is_outside(name)}
    assert {name: places for name, places in found.items() if places} == {}


@pytest.mark.parametrize(
    "text",
    [
        "from prony.kinds.model.schema import ModelWorkload",
        "isinstance(job.workload, ScriptWorkload)",
        "job.workload.kind == 'service'",
        "if entry.job.workload.kind in ('model', 'script'): pass",
        "TABLE[job.workload.kind]",
        "KINDS = ('model', 'service', 'script', 'hardware', 'llm')",
        'TABLE = {"model": 1, "script": 2}',
        "make(kind='model')",
        'document = {"kind": "llm", "model": model}',
    ],
)
def test_the_test_sees_a_kind_that_is_named(text: str) -> None:
    assert named_kinds(text) != []


def test_other_things_that_are_called_kind_are_not_taken_for_one() -> None:
    text = "alarm.kind == 'model'; array.dtype.kind in 'fc'; report.kind != 'service'; entry.job.workload.kind == kind"
    assert named_kinds(text) == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_the_same_files(kind: str) -> None:
    folder = PACKAGE / "kinds" / kind
    assert KINDS[kind] == f"prony.kinds.{kind}"
    assert [part for part in PARTS if not (folder / f"{part}.py").is_file()] == []


def test_a_kind_knows_no_other_kind() -> None:
    for path in (PACKAGE / "kinds").rglob("*.py"):
        for node in statements(tree(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("prony.kinds."):
                assert (node.module or "").split(".")[2] == path.relative_to(PACKAGE / "kinds").parts[0], path


def test_what_runs_a_kind_loads_nothing_that_reports_it() -> None:
    """Ask all kinds in one process: if none of them loads it, all together do not either."""
    program = f"""
import importlib, sys
import prony.runner.jobs
from prony.ports.workload import find_kind
rooms = ("prony.report", "prony.analyse", "prony.app", "prony.store", "sqlalchemy", "matplotlib")
for name in {list(KINDS)!r}:
    kind = find_kind(name)
    kind.schema, kind.prepare, kind.run
    importlib.import_module(f"prony.kinds.{{name}}.runner.runner")
    rooms += (f"prony.kinds.{{name}}.summary", f"prony.kinds.{{name}}.report")
    bad = [module for module in sys.modules if module.startswith(rooms)]
    if bad:
        sys.exit(f"{{name}} loaded {{sorted(bad)}}")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
