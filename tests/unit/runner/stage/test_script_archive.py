"""Archives of scripts: unpacked anew for every job, nothing of them outside their folder."""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

import pytest

from prony.errors import InputError
from prony.kinds.script.prepare import anchored_script
from prony.kinds.script.schema import ScriptWorkload
from prony.model.job import Job
from prony.model.recipe import Measure
from prony.model.result import ResultState
from prony.runner import script_folders
from prony.runner.script_folders import unpack_archive

from .staged_runs import Runs, why


def packed(path: Path, **contents: bytes) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, content in contents.items():
            member = tarfile.TarInfo(name.replace("__", "/").replace("_", "."))
            member.size, member.mode = len(content), 0o644
            tar.addfile(member, io.BytesIO(content))
    return path


def test_a_script_in_an_archive_runs_though_it_was_not_marked_as_one_that_can(runs: Runs) -> None:
    text = f"#!{sys.executable}\nimport prony\nprony.emit({{'x': 1.0}})\n".encode()
    made = packed(runs.base / "scripts.tar", deep__run_py=text)
    result = runs.run(command="./deep/run.py", directory=str(made))
    assert result.state is ResultState.COMPLETE, result.failure
    assert runs.told()["x"] == [1]


def test_the_same_scripts_have_the_same_checksum_in_a_folder_and_in_an_archive(runs: Runs) -> None:
    path = runs.write("scripts/a.sh", "echo")
    path.chmod(0o700)
    first = runs.run(command="true", directory=str(path.parent))
    second = runs.run(command="true", directory=str(packed(runs.base / "s.tar", a_sh=b"echo")))
    assert first.script is not None
    assert second.script is not None
    assert first.script.directory == second.script.directory != ""


def test_an_archive_that_leads_out_of_its_folder_is_refused(tmp_path: Path) -> None:
    made = packed(tmp_path / "x.tar")
    with tarfile.open(made, "w") as tar:
        tar.addfile(tarfile.TarInfo("../out"), io.BytesIO(b""))
    with pytest.raises(InputError, match="outside its folder"):
        unpack_archive(made, tmp_path / "to")
    assert not (tmp_path / "out").exists()


def test_what_is_no_archive_is_told(runs: Runs) -> None:
    result = runs.run(command="true", directory=str(runs.write("x.tar", "text")))
    assert why(result).code == "bad_archive"


def test_an_archive_that_is_too_large_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_folders, "MOST_BYTES", 3)
    with pytest.raises(InputError, match="too much for a copy"):
        unpack_archive(packed(tmp_path / "x.tar", a=b"1234"), tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_where_the_archive_is_not_there_the_folder_that_it_is_made_of_is_taken(tmp_path: Path) -> None:
    work = ScriptWorkload(kind="script", command="true", directory="scripts.tar")
    job = Job(id="x-001", experiment_id="x", name="x", cell={}, seed=1, workload=work, measure=Measure())
    assert anchored_script(job, tmp_path).work(ScriptWorkload).directory == str(tmp_path / "scripts.tar")
    (tmp_path / "scripts").mkdir()
    assert anchored_script(job, tmp_path).work(ScriptWorkload).directory == str(tmp_path / "scripts")
    packed(tmp_path / "scripts.tar")
    assert anchored_script(job, tmp_path).work(ScriptWorkload).directory == str(tmp_path / "scripts.tar")
