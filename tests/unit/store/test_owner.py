from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from prony.store.process_owner import Owner, lives, this_process


def _ended() -> Owner:
    """Return the mark of a process that has ended, as it made it itself."""
    program = "from prony.store.process_owner import this_process; print(this_process().text())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return Owner.read(done.stdout)


def test_this_process_lives() -> None:
    assert this_process().pid == os.getpid()
    assert lives(this_process()) is True


def test_the_mark_survives_as_text() -> None:
    assert Owner.read(this_process().text()) == this_process()


def test_a_process_that_ended_does_not_live() -> None:
    assert lives(_ended()) is False


def test_a_process_that_ended_and_was_not_yet_waited_for_does_not_live() -> None:
    program = "import sys; from prony.store.process_owner import this_process; print(this_process().text(), flush=True)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        mark = Owner.read(child.stdout.read())  # to its end: the child has closed its side by ending
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert lives(mark) is False


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ({"started": "1"}, False),  # the same pid, given to a newer process
        ({"boot": "an earlier one"}, False),
        ({"host": "another/machine"}, None),
        ({"space": "pid:[1]"}, None),  # another container on this machine
        ({"host": "another/machine", "boot": "of it"}, None),
        ({"started": ""}, None),
    ],
)
def test_a_process_is_dead_only_when_this_one_can_tell(change: dict[str, str], answer: bool | None) -> None:
    assert lives(replace(this_process(), **change)) is answer  # type: ignore[arg-type]
