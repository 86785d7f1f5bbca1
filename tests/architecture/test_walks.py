"""The walks that the architecture page draws are those that the code takes."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path

from .house import PACKAGE, ROOT, drawn_layers, modules, page, section, walk

FunctionLike = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
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
    nodes = (node for node in walk(path) if isinstance(node, ast.ImportFrom) and node.module)
    return {name for node in nodes for name in (str(node.module), *(f"{node.module}.{one.name}" for one in node.names))}


def takes_options(path: Path) -> bool:
    functions = [node for node in walk(path) if isinstance(node, ast.FunctionDef)]
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
    functions = [node for node in walk(path) if isinstance(node, ast.FunctionDef)]
    takes = any(
        one.arg == "samples" and one.annotation is not None and ast.unparse(one.annotation) == "pl.DataFrame"
        for function in functions
        for one in (*function.args.args, *function.args.kwonlyargs)
    )
    return takes or any(function.name == "sample_frame" for function in functions)


def height(package: str) -> int:
    """Return how far up the layers a package stands."""
    return next(len(layers()) - at for at, layer in enumerate(layers()) if package in layer.split(" | "))


@cache
def layers() -> list[str]:
    """Return the layers from the top down, as import-linter checks them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    found: list[str] = contracts[0]["layers"]
    return found


def test_the_page_lists_the_layers_that_import_linter_checks() -> None:
    assert drawn_layers() == layers()


def test_the_page_names_files_that_are_there() -> None:
    found = section(page("architecture"), "## Where to look")
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", found)
    assert len(named) > 10
    assert [name for name in named if not (PACKAGE / name).is_file()] == []


def test_a_file_that_the_rest_of_the_page_shortens_is_there_too() -> None:
    named = set(re.findall(r"[a-z_]+(?:/[a-z_]+)*\.py\b", page("architecture")))
    known = [f"/{path.relative_to(PACKAGE)}" for path in modules().values()]
    missing = [name for name in sorted(named) if not any(path.endswith(f"/{name}") for path in known)]
    assert [name for name in missing if not (ROOT / name).is_file()] == []


def test_what_the_page_says_a_file_holds_stands_in_it() -> None:
    told = re.findall(r"`([a-z_/]+\.py)`: `([A-Za-z_.]+)`", page("architecture"))
    assert len(told) > 15
    missing = [(name, what) for name, what in told if what.split(".")[-1] not in defined(PACKAGE / name)]
    assert missing == []


def defined(path: Path) -> set[str]:
    """Return the names of the functions, methods, classes and constants of a module."""
    named = {node.name for node in walk(path) if isinstance(node, FunctionLike)}
    targets = {node.target for node in walk(path) if isinstance(node, ast.AnnAssign)}
    return named | {target.id for target in targets if isinstance(target, ast.Name)}


def test_dotted_names_on_the_page_lead_to_modules() -> None:
    rooms = "|".join(sorted({name.split(".")[1] for name in modules() if name.count(".") == 1}))
    text = re.sub(r"```python.*?```", "", page("architecture"), flags=re.DOTALL)
    dotted = set(re.findall(rf"(?<![\w./])(?:{rooms})(?:\.[A-Za-z_]+)+", text))
    wrong = [name for name in dotted if not name.endswith((".py", ".yaml", ".json", ".md")) and not leads(name)]
    assert sorted(wrong) == []


def leads(name: str) -> bool:
    """Say whether a dotted name is a module, or a thing of the module that it begins with."""
    parts, known = name.split("."), modules()
    longest = next(count for count in range(len(parts), 0, -1) if ".".join(("prony", *parts[:count])) in known)
    path = known[".".join(("prony", *parts[:longest]))]
    return longest == len(parts) or parts[longest] in path.read_text()


def test_the_page_names_every_part_of_a_fleet_and_its_file() -> None:
    table = section(page("architecture"), "## The same job through a fleet").partition("| part |")[2]
    parts = {name for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    fleet = (PACKAGE / "app" / "fleet" / "fleet.py").read_text()
    made = set(re.findall(r"\bself\.(\w+) = [A-Z]", fleet))
    assert made - parts == {"context", "state", "alarm_engine", "access"}
    elsewhere = {name for name in parts if not (PACKAGE / "app" / "fleet" / f"{name}.py").is_file()}
    assert elsewhere == {"intake", "health"}, "the page says in which files these two stand"
