"""Every fault of another program that Prony must not have is shown by a test, and each program has a guide."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from .house import ROOT, page, rows, section

FAULTS: dict[str, dict[str, list[str]]] = tomllib.loads(Path(__file__).with_name("known_faults.toml").read_text())
DEFINED = re.compile(r"^ *(?:async )?def (test_[a-z0-9_]+)\(", re.MULTILINE)


@cache
def known_tests() -> frozenset[str]:
    """Return the name of every test function of this repository."""
    return frozenset(name for path in (ROOT / "tests").rglob("test_*.py") for name in DEFINED.findall(path.read_text()))


@pytest.mark.parametrize("program", FAULTS)
def test_every_fault_is_shown_by_a_test_that_exists(program: str) -> None:
    assert FAULTS[program]
    assert [fault for fault, tests in FAULTS[program].items() if not tests] == []
    named = {name for tests in FAULTS[program].values() for name in tests}
    assert sorted(named - known_tests()) == []


@pytest.mark.parametrize("program", FAULTS)
def test_the_guide_of_each_program_has_a_table_of_what_to_use_here(program: str) -> None:
    guide = section(page("coming-from"), f"## {program}")
    assert len(rows(guide)) > 5
    assert "prony " in guide
