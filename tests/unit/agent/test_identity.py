"""An agent is the same after every restart, and never two processes at once."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from prony.agent import identity
from prony.agent.identity import Identity, Slot, agent_name, checked_name, device_key, hold_slot
from prony.cli.main import main
from prony.errors import ConflictError, InputError, StoreError
from prony.store.home import Home

HERE, THERE = "http://127.0.0.1:1", "http://127.0.0.1:2"
HOLD = """
import sys, signal
from pathlib import Path
from prony.agent.identity import hold_slot
from prony.store.home import Home
with hold_slot(Home(Path(sys.argv[1]))) as slot:
    print(slot.name, flush=True)
    signal.pause()
"""


def test_the_first_agent_takes_the_first_slot_and_keeps_it(home: Home) -> None:
    for _ in range(2):
        with hold_slot(home, server=HERE) as slot:
            assert slot.name == "1"
            slot.keep(Identity(server=HERE, id="a-1", token="secret"))
    assert slot.identity() == Identity(server=HERE, id="a-1", token="secret")


def test_a_second_agent_on_the_same_home_takes_the_next_slot(home: Home) -> None:
    with hold_slot(home) as first, hold_slot(home) as second:
        assert (first.name, second.name) == ("1", "2")
    with hold_slot(home) as again:
        assert again.name == "1"


def test_a_process_that_is_killed_lets_go_of_its_slot(home: Home) -> None:
    command = [sys.executable, "-c", HOLD, str(home.root)]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "1\n"
    with hold_slot(home) as slot:
        assert slot.name == "2"
    holder.kill()
    holder.communicate()
    with hold_slot(home) as slot:
        assert slot.name == "1"


def test_a_name_chooses_a_slot_and_is_refused_while_it_runs(home: Home) -> None:
    with hold_slot(home, name="rack-7") as slot:
        assert slot.path == home.root / "agents" / "rack-7"
        with pytest.raises(ConflictError, match="rack-7 already runs"), hold_slot(home, name="rack-7"):
            pass


def test_a_home_full_of_agents_of_another_server_has_no_slot(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "_MOST_SLOTS", 1)
    with hold_slot(home, server=HERE) as slot:
        slot.keep(Identity(server=HERE, id="a-1", token="secret"))
    with pytest.raises(ConflictError, match="run, or belong to another server") as told, hold_slot(home, server=THERE):
        pass
    assert str(home.root / "agents") in told.value.hint


def test_an_identity_is_never_used_with_another_server(home: Home) -> None:
    with hold_slot(home, server=HERE) as slot:
        slot.keep(Identity(server=HERE, id="a-1", token="secret"))
    with hold_slot(home, server=THERE) as other:
        assert other.name == "2"
        assert other.identity() is None
    with hold_slot(home) as slot:  # no server named: the slot's own
        assert slot.name == "1"
    with pytest.raises(ConflictError, match="belongs to http"), hold_slot(home, server=THERE, name="1"):
        pass


def test_the_token_is_readable_by_its_owner_alone(slot: Slot) -> None:
    before = os.umask(0)
    try:
        slot.keep(Identity(server=HERE, id="a-1", token="secret"))
        slot.keep(Identity(server=HERE, id="a-1", token="another"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(slot.file.stat().st_mode) == 0o600
    assert json.loads(slot.file.read_text())["token"] == "another"
    assert [path.name for path in slot.path.iterdir()] == ["agent.json"]


def test_a_damaged_identity_is_told_and_not_replaced(slot: Slot) -> None:
    slot.file.write_text("{")
    with pytest.raises(StoreError, match=r"agent\.json"):
        slot.identity()


@pytest.mark.parametrize("name", ["", "../evil", "a b", ".hidden", "-x", "x" * 101, "a/b"])
def test_a_name_that_could_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(InputError) as caught:
        checked_name(name)
    assert "begins with a letter or digit" in caught.value.hint


def test_agents_of_one_device_have_one_key_unless_they_share_it(home: Home, tmp_path: Path) -> None:
    first, second = (Slot(name, home.root / "agents" / name) for name in ("1", "2"))
    elsewhere = Slot("1", tmp_path / "other" / "agents" / "1")
    keys = {device_key(slot, is_shared=False) for slot in (first, second, elsewhere)}
    assert len(keys) == 1
    shared = {device_key(slot, is_shared=True) for slot in (first, second, elsewhere)}
    assert len(shared) == 3
    assert not keys & shared


def test_people_see_the_devices_name(tmp_path: Path) -> None:
    assert agent_name(Slot("1", tmp_path), "My Laptop (2021)") == "My-Laptop-2021"
    assert agent_name(Slot("2", tmp_path), "vm") == "vm-2"
    assert agent_name(Slot("rack-7", tmp_path), "vm") == "rack-7"
    assert agent_name(Slot("1", tmp_path), "名前") == "device"


def test_an_owner_is_told_what_is_wrong_with_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, told in (
        (["--label", "room"], "'room' is not a label"),
        (["--label", "room=the cellar"], "is not a valid label"),
        (["--drain-timeout", "soon"], "--drain-timeout"),
        (["--model-max-bytes", "huge"], "--model-max-bytes"),
        (["--metrics-port", "70000"], "70000 is not a port"),
        (["--server", "ftp://x"], "not the address of a server"),
        (["--token-file", "/nowhere/token"], "cannot read the token"),
        (["--name", "../x"], "is not a valid agent name"),
    ):
        assert main(["agent", "start", *arguments]) == 2
        assert told in capsys.readouterr().err
