from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from prony.errors import InputError, StoreError
from prony.store.home import Home, home


def test_the_variable_decides_over_everything_else(tmp_path: Path) -> None:
    assert home({"PRONY_HOME": str(tmp_path), "HOME": "/elsewhere"}).root == tmp_path


def test_a_relative_variable_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert home({"PRONY_HOME": "here"}).root == tmp_path / "here"


def test_an_empty_variable_counts_as_none() -> None:
    assert home({"PRONY_HOME": "", "HOME": "/h"}, "linux").root == Path("/h/.local/share/prony")


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("linux", {"HOME": "/h"}, "/h/.local/share/prony"),
        ("linux", {"HOME": "/h", "XDG_DATA_HOME": "/data"}, "/data/prony"),
        ("linux", {"HOME": "/h", "XDG_DATA_HOME": "relative"}, "/h/.local/share/prony"),
        ("darwin", {"HOME": "/h"}, "/h/Library/Application Support/Prony"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/Prony"),
        ("win32", {"HOME": "/h"}, "/h/AppData/Local/Prony"),
    ],
)
def test_each_system_has_its_usual_place(platform: str, environ: dict[str, str], expected: str) -> None:
    assert home(environ, platform).root == Path(expected)


def test_without_a_home_variable_the_user_database_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    assert home({}, "linux").root == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".local/share/prony"


def test_a_user_that_no_database_knows_is_told_to_name_a_home() -> None:
    program = (
        "import os, pwd\n"
        "from prony.errors import StoreError\n"
        "from prony.store.home import home\n"
        "os.setuid(54321); os.environ.pop('HOME', None)\n"
        "try: home({})\n"
        "except StoreError as error: print(error.hint)"
    )
    if os.getuid() != 0:
        pytest.skip("only root can become a user that does not exist")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "PRONY_HOME" in done.stdout


def test_looking_makes_nothing_and_creating_makes_everything(tmp_path: Path) -> None:
    made = Home(tmp_path / "a" / "b")
    assert not made.root.exists()
    made.create().create()
    assert made.results.is_dir()
    assert made.cache.is_dir()
    assert made.engines.is_dir()


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(StoreError, match=r"a file is in the way of the folder .*home") as caught:
        Home(tmp_path / "home").create()
    assert "PRONY_HOME" in caught.value.hint


def test_a_file_above_it_is_in_the_way_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="in the way"):
        Home(tmp_path / "file" / "home").create()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is a folder that even root cannot write to")
def test_a_place_that_takes_no_folder_is_named() -> None:
    with pytest.raises(StoreError, match="cannot make /proc/prony") as caught:
        Home(Path("/proc/prony")).create()
    assert "PRONY_HOME" in caught.value.hint


@pytest.mark.parametrize("text", ["", "..", "../x", "a/b", ".hidden", "a b", "x" * 129, "a\n", "a\\b"])
def test_an_id_that_could_leave_the_home_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="cannot be an id"):
        Home(Path("/h")).result_folder("e", text)


def test_each_attempt_has_a_folder_of_its_own() -> None:
    place = Home(Path("/h"))
    assert place.result_folder("e", "j") == Path("/h/results/e/j")
    assert place.result_folder("e", "j", 2) == Path("/h/results/e/j.2")
