from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from prony.errors import StoreError
from prony.store.lock import attempted, locked

HOLD = (
    "import sys; from pathlib import Path; from prony.store.lock import locked\n"
    "with locked(Path(sys.argv[1])):\n"
    "    print('held', flush=True); sys.stdin.read()"
)


def test_only_one_holds_it_and_leaving_the_block_gives_it_back(tmp_path: Path) -> None:
    place = tmp_path / "lock"
    with locked(place), attempted(place) as taken:
        assert taken is False
    with attempted(place) as taken:
        assert taken is True


def test_it_is_given_back_when_its_holder_is_killed(tmp_path: Path) -> None:
    place = tmp_path / "lock"
    command = [sys.executable, "-c", HOLD, str(place)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with attempted(place) as taken:
            assert taken is False
        holder.kill()
        holder.wait()
    with attempted(place) as taken:
        assert taken is True


def test_waiting_has_an_end_that_says_what_is_going_on(tmp_path: Path) -> None:
    place = tmp_path / "lock"
    with (
        locked(place),
        pytest.raises(StoreError, match="another Prony has been changing"),
        locked(place, wait_s=0.05),
    ):
        pytest.fail("two hold it")


def test_a_place_where_it_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot open .*none"), locked(tmp_path / "none" / "lock"):
        pytest.fail("there is no such folder")
