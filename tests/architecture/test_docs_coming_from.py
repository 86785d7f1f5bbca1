"""The page for those who come from another tool names, for every fault that is not shared, a test that is there."""

from __future__ import annotations

import re
from functools import cache

import pytest

from .house import ROOT, page, rows, section

NAMED = re.compile(r"`(test_[a-z0-9_]+)`")
DEFINED = re.compile(r"^ *(?:async )?def (test_[a-z0-9_]+)\(", re.MULTILINE)
SEEDS = ("SARK and Dumont", "AI Factory", "Benchmark AI", "RUCKUS")


@cache
def known_tests() -> frozenset[str]:
    """Return the name of every test function of this repository."""
    return frozenset(name for path in (ROOT / "tests").rglob("test_*.py") for name in DEFINED.findall(path.read_text()))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_test_that_the_page_names_is_there(seed: str) -> None:
    named = NAMED.findall(section(page("coming-from"), f"## {seed}"))
    assert sorted(set(named) - known_tests()) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_every_fault_on_the_page_has_a_test(seed: str) -> None:
    text = section(page("coming-from"), f"## {seed}")
    tables = re.findall(r"^\| fault \|.*\n(?:\|.*\n)+", text, re.MULTILINE)
    told = [row for table in tables for row in rows(table)[1:]]
    assert [row[0] for row in told if not NAMED.search(row[-1])] == []


def test_the_page_speaks_of_faults() -> None:
    assert NAMED.search(section(page("coming-from"), "## SARK and Dumont"))
