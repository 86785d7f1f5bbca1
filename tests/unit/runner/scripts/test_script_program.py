"""Whether the program of a script is there is looked at before it runs, and as a run would find it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from prony.errors import InputError
from prony.kinds.script.prepare import PART
from prony.kinds.script.schema import ScriptWorkload
from prony.model.job import Job
from prony.model.recipe import Measure
from prony.runner.context import RunContext

Check = Callable[..., str]


@pytest.fixture
def hints() -> list[str]:
    """What a refusal said to do."""
    return []


@pytest.fixture
def check(tmp_path: Path, hints: list[str]) -> Check:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/train.sh").write_text("#!/bin/sh\n")
    (tmp_path / "scripts/other.sh").write_text("#!/bin/sh\n")
    (tmp_path / "scripts/sub").mkdir()
    (tmp_path / "scripts.tar").write_bytes(b"")
    for folder in ("env", ".venv", "node_modules"):
        program = tmp_path / "scripts" / folder / "bin/python"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    (tmp_path / "scripts/env/pyvenv.cfg").touch()
    (tmp_path / "scripts/link").symlink_to("sub")
    (tmp_path / "scripts/sub/linked.sh").write_text("#!/bin/sh\n")
    (tmp_path / "beside.sh").write_text("#!/bin/sh\n")

    def told(directory: str | None, command: str, **more: Any) -> str:
        place = None if directory is None else str(tmp_path / directory)
        work = ScriptWorkload(kind="script", command=command, directory=place, **more)
        job = Job(id="j1", experiment_id="e1", name="script", workload=work, measure=Measure(repeats=1))
        try:
            PART.try_once(job, cast("RunContext", None))
        except InputError as exc:
            hints.append(exc.hint)
            return exc.message.replace(f"{tmp_path}/", "")
        return ""

    return told


@pytest.mark.parametrize(
    ("directory", "command", "more"),
    [
        ("scripts", "./train.sh", {}),  # not marked as a program: a copy is
        ("scripts.tar", "./train.sh", {}),
        ("scripts", "sub/../train.sh", {}),
        ("scripts", "env/bin/python train.sh", {"copy_files": False}),
        ("scripts/train.sh", "./train.sh", {}),
        ("scripts", "src/train.sh", {"directory_name": "src"}),
        (None, "bin/tool", {"sources": ({"source": "tool", "path": "bin/tool"},)}),
        ("scripts", "$(HOME)/train.sh", {}),
    ],
)
def test_what_a_run_would_find_is_not_refused(
    check: Check, directory: str | None, command: str, more: dict[str, Any]
) -> None:
    assert check(directory, command, **more) == ""


@pytest.mark.parametrize(
    ("directory", "command", "more", "told"),
    [
        ("scripts", "./trian.sh", {}, "program ./trian.sh not found in scripts"),
        ("scripts/train.sh", "./other.sh", {}, "program ./other.sh not found in scripts/train.sh"),
        ("scripts", "./train.sh", {"copy_files": False}, "scripts/train.sh is not executable"),
        (None, "./train.sh", {}, "./train.sh not found: the command runs in an empty folder"),
        (None, "/no/such/program", {}, "program /no/such/program does not exist"),
        (None, "nosuchprogram", {}, "program nosuchprogram not found on PATH"),
    ],
)
def test_what_a_run_would_not_find_is_refused(
    check: Check, directory: str | None, command: str, more: dict[str, Any], told: str
) -> None:
    assert check(directory, command, **more) == told


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("env/bin/python train.sh", "env/bin/python"),
        (".venv/bin/python train.sh", ".venv/bin/python"),
        ("./node_modules/bin/python", "./node_modules/bin/python"),
        ("../beside.sh", "../beside.sh"),
        ("link/linked.sh", "link/linked.sh"),  # a link to a folder is not followed
        ("sh ../beside.sh", "../beside.sh"),
    ],
)
def test_what_a_copy_leaves_out_is_to_be_named_by_its_path(
    check: Check, hints: list[str], tmp_path: Path, command: str, file: str
) -> None:
    assert check("scripts", command).startswith(f"{file} is not copied: the command runs in a copy of scripts")
    path = os.path.normpath(tmp_path / "scripts" / file)
    assert hints == [f"write the absolute path: {path}"]
    assert check("scripts", f"sh {path}") == ""


@pytest.mark.parametrize("name", ["n" * 300, "p/" * 3000])
def test_a_name_that_is_too_long_is_no_program(check: Check, name: str) -> None:
    assert check(None, f"/{name}") == f"program /{name} does not exist"
    assert check("scripts", f"./{name}").startswith("program ")
    assert check("scripts", f"sh {name}").startswith(f"{name} not found in ")


def test_an_absolute_program_that_cannot_be_run_is_told_as_that(check: Check, tmp_path: Path) -> None:
    assert check(None, str(tmp_path / "scripts/train.sh")) == "scripts/train.sh is not executable"
