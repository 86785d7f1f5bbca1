"""The walks that the architecture page draws are those that the code takes."""

from __future__ import annotations

import ast
import re
import tomllib
from itertools import pairwise
from pathlib import Path

from .house import PACKAGE, ROOT, modules, page, tree

MOST_ROOMS = 10
BEGINS = ("prony.cli.main", "prony.cli.commands.run")
# How options travel: as they were parsed, as what they mean for the end of a run, and as overrides of the recipe.
KINDS = ("ArgumentParser", "Namespace", "RunOutput")
NAMES = ("overrides",)

MOST_SAMPLE_ROOMS = 8
MOST_CLIMBS = 1
SAMPLES_BEGIN = ("prony.runner.folder", "prony.app.results", "prony.kinds.model.summary")
# Other kinds have summaries of their own, and what a load's requests are made into is theirs.
SAMPLES_REACH = (
    "prony.runner.",
    "prony.instruments.",
    "prony.ports.",
    "prony.kinds.model.",
    "prony.analyse.",
    "prony.app.results",
)


def test_the_options_of_a_run_pass_few_modules_and_the_page_names_each() -> None:
    walk = page("architecture").partition("### The options of `prony run`")[2].partition("\n#")[0]
    drawn = {name.removesuffix(".py") for name in re.findall(r"\b(?:cli|recipe)/[a-z_/]+\.py", walk)}
    passed = {name.removeprefix("prony.").replace(".", "/") for name in rooms()}
    assert passed == drawn
    assert len(passed) <= MOST_ROOMS


def rooms() -> set[str]:
    """Return the modules that `prony run` leads to and that take options from another."""
    known = modules()
    seen, waiting = set(BEGINS), list(BEGINS)
    while waiting:
        for found in imported(known[waiting.pop()]):
            if found in known and found not in seen and found.startswith(("prony.cli.", "prony.recipe")):
                seen.add(found)
                waiting.append(found)
    return {name for name in seen if name in BEGINS or takes_options(known[name])}


def imported(path: Path) -> set[str]:
    nodes = (node for node in ast.walk(tree(path)) if isinstance(node, ast.ImportFrom) and node.module)
    return {name for node in nodes for name in (str(node.module), *(f"{node.module}.{one.name}" for one in node.names))}


def takes_options(path: Path) -> bool:
    functions = [node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef)]
    arguments = [one for function in functions for one in (*function.args.args, *function.args.kwonlyargs)]
    return any(
        one.arg in NAMES or (isinstance(one.annotation, ast.Name) and one.annotation.id in KINDS) for one in arguments
    )


def test_the_samples_of_a_job_pass_few_modules_and_climb_once() -> None:
    walk = page("architecture").partition("### The samples of a model's job")[2].partition("\n#")[0]
    drawn = re.findall(r"^ ([a-z_]+(?:/[a-z_]+)*)\.py ", walk, re.MULTILINE)
    assert {name.removeprefix("prony.").replace(".", "/") for name in sample_rooms()} == set(drawn)
    assert len(drawn) <= MOST_SAMPLE_ROOMS
    heights = [height(name.partition("/")[0]) for name in drawn]
    assert sum(after > before for before, after in pairwise(heights)) <= MOST_CLIMBS


def sample_rooms() -> set[str]:
    """Return the modules that make the frame of a model's samples, or take it from another."""
    known = modules()
    seen, waiting = set(SAMPLES_BEGIN), list(SAMPLES_BEGIN)
    while waiting:
        for found in imported(known[waiting.pop()]) & known.keys() - seen:
            if found.startswith(SAMPLES_REACH):
                seen.add(found)
                waiting.append(found)
    return {name for name in seen if name == SAMPLES_BEGIN[0] or handles_samples(known[name])}


def handles_samples(path: Path) -> bool:
    functions = [node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef)]
    takes = any(
        one.arg == "samples" and one.annotation is not None and ast.unparse(one.annotation) == "pl.DataFrame"
        for function in functions
        for one in (*function.args.args, *function.args.kwonlyargs)
    )
    return takes or any(function.name == "sample_frame" for function in functions)


def height(package: str) -> int:
    """Return how far up the layers a package stands."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = contracts[0]["layers"]
    return next(len(layers) - at for at, layer in enumerate(layers) if package in layer.split(" | "))


def test_the_page_names_files_that_are_there() -> None:
    found = page("architecture").partition("## Where to look")[2].partition("\n## ")[0]
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", found)
    assert len(named) > 10
    assert [name for name in named if not (PACKAGE / name).is_file()] == []
