"""The page of engines says what the code does: engines and the files that they read."""

from __future__ import annotations

import re

from prony.ports.models import FOLDER_MARKS
from prony.ports.plugins import ENGINES, find_plugins

from .house import page, rows, section


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
