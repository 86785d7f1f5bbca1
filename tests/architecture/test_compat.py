"""Other programs stand in their folders under compat/, and nothing else in the package names them."""

from __future__ import annotations

import re

import pytest

from .house import PACKAGE, entry_points, modules, project

# The folder of each program, and how its name is written in code, texts and comments.
PROGRAMS = {
    "ai_factory": r"ai[ _-]?factory",
    "benchmark_ai": r"benchmark[ _-]?ai",
    "ruckus": r"ruckus",
    "sark": r"sark|dumont",
}


def lines_that_name(word: str, inside: bool) -> list[str]:
    """Return the lines of code, text and comments that hold a word, inside of compat/ or outside of it."""
    found = []
    for name, path in modules().items():
        if name.startswith("prony.compat") is inside:
            text = path.read_text()
            for match in re.finditer(word, text, re.IGNORECASE):
                number = text.count("\n", 0, match.start()) + 1
                found.append(f"{path.relative_to(PACKAGE)}:{number}: {text.splitlines()[number - 1].strip()}")
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_outside_its_folder_names_another_program(program: str) -> None:
    assert lines_that_name(PROGRAMS[program], inside=False) == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_is_named_would_be_found(program: str) -> None:
    assert lines_that_name(PROGRAMS[program], inside=True) != []


def test_no_program_is_named_in_the_folder_of_another() -> None:
    strangers = [
        line
        for program in PROGRAMS
        for line in lines_that_name(PROGRAMS[program], inside=True)
        if not line.startswith(f"compat/{program}/")
    ]
    assert strangers == []


def test_every_folder_of_compat_is_a_program_with_an_entry_point() -> None:
    folders = {path.name for path in (PACKAGE / "compat").iterdir() if (path / "__init__.py").is_file()}
    targets = [target for group in project()["entry-points"] for target in entry_points(group).values()]
    reached = {target.split(".")[2] for target in targets if target.startswith("prony.compat.")}
    assert folders == reached == PROGRAMS.keys()
