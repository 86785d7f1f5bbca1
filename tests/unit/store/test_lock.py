from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from prony.errors import StoreError
from prony.store.lock import hold_file_lock, try_file_lock

HOLD = (
    "import sys; from pathlib import Path; from prony.store.lock import hold_file_lock\n"
    "with hold_file_lock(Path(sys.argv[1])):\n"
    "    print('held', flush=True); sys.stdin.read()"
)


def test_only_one_holds_it_and_leaving_the_block_gives_it_back(tmp_path: Path) -> None:
    place = tmp_path / "lock"
    with hold_file_lock(place), try_file_lock(place) as taken:
        assert taken is False
    with try_file_lock(place) as taken:
        assert taken is True


def test_it_is_given_back_when_its_holder_is_killed(tmp_path: Path) -> None:
    place = tmp_path / "lock"
    command = [sys.executable, "-c", HOLD, str(place)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with try_file_lock(place) as taken:
            assert taken is False
        holder.kill()
        holder.wait()
    with try_file_lock(place) as taken:
        assert taken is True


def test_waiting_has_an_end_that_says_what_is_going_on(tmp_path: Path) -> None:
    place = tmp_path / "lock"
    with (
        hold_file_lock(place),
        pytest.raises(StoreError, match="another Prony has been changing"),
        hold_file_lock(place, wait_s=0.05),
    ):
        pytest.fail("two hold it")


def test_a_place_where_it_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot open .*none"), hold_file_lock(tmp_path / "none" / "lock"):
        pytest.fail("there is no such folder")
