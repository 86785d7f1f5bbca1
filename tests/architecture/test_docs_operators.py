"""Pages for operators say what the code does: errors and their hints, engines and the files that they read."""

from __future__ import annotations

import re

import pytest

from prony.ports.models import FOLDER_MARKS
from prony.ports.plugins import ENGINES, find_plugins
from tools.error_hints import collect_hints, write_hint_table

from .house import page, rows, section


def test_hints_of_the_table_are_whole_and_each_code_is_there_once() -> None:
    codes = [one.code for one in collect_hints()]
    assert {"server_running", "newer_store", "unauthorized", "no_container"} <= set(codes)
    assert len(codes) == len(set(codes))
    assert "set PRONY_HOME to another folder" in next(
        one.hint for one in collect_hints() if one.code == "server_running"
    )


def test_what_people_wrote_around_the_table_stays() -> None:
    written = write_hint_table(
        "# Before\n\n| code | it says | what to do |\n|---|---|---|\n| old | x | y |\n\n## After\n"
    )
    assert written.startswith("# Before\n\n| code |")
    assert written.endswith("|\n\n## After\n")
    assert "| old |" not in written
    with pytest.raises(ValueError, match="no line"):
        write_hint_table("# No table\n")


def test_the_page_of_engines_names_every_engine_with_the_files_that_it_reads() -> None:
    told = {}
    for model, engine, _ in rows(section(page("choose-engine"), "## By file"))[1:]:
        name = re.findall(r"`([^`]+)`", engine)[0]
        told[name] = {word for word in re.findall(r"`([^`]+)`", model + engine) if word != name}
    marked = {kind: {mark} for kind, mark in FOLDER_MARKS.items()}
    read = {
        name: {word for ending in entry.load().formats for word in marked.get(ending, {ending})}
        for name, entry in find_plugins(ENGINES).items()
    }
    assert told == read
