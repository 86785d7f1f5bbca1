"""What is packed for a target: with extras of extras, and nothing left out in silence."""

from __future__ import annotations

import tarfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest

from prony.app.target_packages import (
    expand_extras,
    find_requirements,
    interpreter_here,
    required_distributions,
    write_packages,
)
from prony.errors import InputError


class Told(Distribution):
    """A distribution that requires what it is given."""

    def __init__(self, *lines: str) -> None:
        self._lines = lines

    @property
    def requires(self) -> list[str]:
        return list(self._lines)

    def read_text(self, filename: str) -> None:
        raise NotImplementedError

    def locate_file(self, path: object) -> Path:
        raise NotImplementedError


def test_an_extra_brings_the_extras_that_it_names() -> None:
    assert set(expand_extras(["server"])) == {"server", "report"}
    assert {"onnx", "server", "report", "redis"} <= set(expand_extras(["all"]))
    assert expand_extras([]) == []


def test_an_unknown_extra_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="Prony has no extra 'onx'") as caught:
        expand_extras(["onx"])
    assert "onnx" in caught.value.hint


def test_requirements_are_read_with_their_own_extras_and_without_their_markers() -> None:
    told = Told(
        "numpy>=1.26",
        'py-cpuinfo>=9.0; sys_platform != "linux"',
        'psycopg[binary, pool]>=3.2; extra == "postgres"',
        'Some.Thing; sys_platform == "plan9" and extra == "postgres"',
        'redis>=5.0; extra == "redis"',
    )
    found = find_requirements(told, ["postgres"])
    assert [(one.name, one.extras, one.text) for one in found] == [
        ("numpy", (), "numpy>=1.26"),
        ("py-cpuinfo", (), "py-cpuinfo>=9.0"),
        ("psycopg", ("binary", "pool"), "psycopg[binary, pool]>=3.2"),
        ("some-thing", (), "Some.Thing"),
    ]
    assert [one.is_for("linux") for one in found] == [True, False, True, False]
    assert [one.is_for("plan9") for one in found] == [True, True, True, True]


def test_an_extra_that_is_installed_here_comes_with_what_it_requires() -> None:
    base = {found.name for found in required_distributions([])}
    assert "numpy" in base
    assert not {"prony", "redis", "psycopg-binary"} & base
    more = {found.name for found in required_distributions(expand_extras(["redis", "postgres"]))}
    assert {"redis", "psycopg", "psycopg-binary"} | base <= more


def test_an_extra_that_is_not_installed_here_is_fetched_and_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    fetched: list[str] = []

    def look_up(name: str) -> Distribution:
        if name == "redis":
            raise PackageNotFoundError(name)
        return distribution(name)

    def run(command: list[str], **_: object) -> object:
        fetched.extend(command)
        folder = Path(command[command.index("--target") + 1], "redis")
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        return type("Done", (), {"returncode": 0})()

    monkeypatch.setattr("prony.app.target_packages.distribution", look_up)
    monkeypatch.setattr("prony.app.target_packages.subprocess.run", run)
    write_packages(interpreter_here(), ["redis"], tmp_path / "packages.tar", said.append)
    assert said == [
        f"fetching packages for Python {interpreter_here().version} on {interpreter_here().machine} "
        "(redis is not installed here)"
    ]
    assert {"redis>=5.0", "numpy>=1.26"} <= set(fetched)
    assert not [word for word in fetched if word.startswith(("onnx", "prony"))]
    with tarfile.open(tmp_path / "packages.tar") as archive:
        assert {"./redis/__init__.py", "prony/__init__.py"} <= set(archive.getnames())
