"""CONTRIBUTING.md knows every folder, and every file that it names is there."""

from __future__ import annotations

import re

from .house import PACKAGE, ROOT, files

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
NAMED = set(re.findall(r"`([\w.-]+(?:/[\w.-]*)+)`", TEXT))
# Made by a build, or outside of the repository.
ELSEWHERE = {"build/test-busy/", "dist/"}


def folders_of(*places: str) -> set[str]:
    """Return the folders of the repository that lie right below one of these places, as paths from the root."""
    paths = [path.relative_to(ROOT).as_posix() for path in files()]
    found = {re.match(rf"{re.escape(place)}([\w-]+)/", path) for place in places for path in paths}
    return {match[0] for match in found if match}


def test_every_folder_of_the_repository_and_of_the_tests_is_named() -> None:
    assert folders_of("") - NAMED - {"src/"} == set()
    assert folders_of("tests/") - NAMED == set()


def test_every_folder_of_the_package_is_named() -> None:
    assert {path.removeprefix("src/prony/") for path in folders_of("src/prony/")} - NAMED == set()


def test_every_path_that_is_named_is_there() -> None:
    places = (ROOT, PACKAGE)
    assert [name for name in NAMED - ELSEWHERE if not any((place / name).exists() for place in places)] == []
