"""A function that no other process can import is refused for the reason that is true."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from prony.api.function_recipe import locate_function
from prony.errors import InputError


def spin() -> None:
    """Stand for a function of a script."""


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (None, "spin is defined in a notebook or typed in,"),
        ("<stdin>", "spin is defined in a notebook or typed in,"),
        ("/opt/bin/measure", "spin is defined in /opt/bin/measure, whose name does not end in .py,"),
    ],
)
def test_a_function_of_no_python_file_is_refused(
    monkeypatch: pytest.MonkeyPatch, file: str | None, reason: str
) -> None:
    run_as_script(monkeypatch, file)
    with pytest.raises(InputError) as told:
        locate_function(spin)
    assert told.value.message == f"{reason} so no other process can import it"


def test_a_function_of_a_script_is_named_by_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run_as_script(monkeypatch, str(tmp_path / "measure.py"))
    assert locate_function(spin) == (f"{tmp_path / 'measure.py'}:spin", None)


def run_as_script(monkeypatch: pytest.MonkeyPatch, file: str | None) -> None:
    """Let this process look as if it ran `file`, and `spin` stood in it."""
    main = ModuleType("__main__")
    if file is not None:
        main.__file__ = file
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(spin, "__module__", "__main__")
