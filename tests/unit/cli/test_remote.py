"""Which server is asked, and as whom: options before the environment, the environment before what runs here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from prony.cli.main import main
from prony.store.process_owner import Owner, this_process
from servers.canned import Canned, document
from servers.documents import page

EMPTY = document({"lots": [], "waiting": 0, "leased": 0})


def told(server: Canned) -> str:
    return server.requests[-1].headers.get("Authorization", "")


def test_the_option_beats_the_environment(server: Canned, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_SERVER", "http://127.0.0.1:9")
    server.says(EMPTY)
    assert main(["queue", "--server", server.url]) == 0
    assert len(server.requests) == 1


def test_a_server_that_runs_in_this_home_needs_no_name(
    server: Canned, monkeypatch: pytest.MonkeyPatch, prony_home: Path
) -> None:
    monkeypatch.delenv("PRONY_SERVER")
    prony_home.mkdir()
    (prony_home / "server.json").write_text(json.dumps({"url": server.url, "pid": 1}))
    server.says(EMPTY)
    assert main(["queue"]) == 0
    assert len(server.requests) == 1


@pytest.fixture
def ended() -> Owner:
    """A process that was here and is gone."""
    code = "from prony.store.process_owner import this_process; print(this_process().text())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return Owner.read(done.stdout)


@pytest.mark.parametrize("what", ["gone", "another"])
def test_an_address_that_a_killed_server_left_is_not_asked(
    what: str, ended: Owner, server: Canned, monkeypatch: pytest.MonkeyPatch, prony_home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.delenv("PRONY_SERVER")
    prony_home.mkdir()
    # Its number may have gone to another process since: this one.
    process = ended if what == "gone" else replace(ended, pid=os.getpid())
    note = {"url": server.url, "pid": process.pid, "process": asdict(process)}
    (prony_home / "server.json").write_text(json.dumps(note))
    server.says(EMPTY)
    assert main(["queue"]) == 2
    said = capsys.readouterr().err
    assert f"no server runs here: the one at {server.url}, process {process.pid}, was killed" in said
    assert str(prony_home / "server.json") in said
    assert "`prony server` starts it again" in said
    assert server.requests == []


@pytest.mark.parametrize("process", ["this", "of another host", "unreadable", "none"])
def test_an_address_is_asked_where_its_server_may_be_there(
    process: str, server: Canned, monkeypatch: pytest.MonkeyPatch, prony_home: Path
) -> None:
    monkeypatch.delenv("PRONY_SERVER")
    prony_home.mkdir()
    this = this_process()
    written = {"this": asdict(this), "of another host": asdict(replace(this, host="else/where")), "unreadable": [7]}
    (prony_home / "server.json").write_text(json.dumps({"url": server.url, "process": written.get(process)}))
    server.says(EMPTY)
    assert main(["queue"]) == 0
    assert len(server.requests) == 1


@pytest.mark.parametrize("content", [None, "", "[]", '{"url": 3}', "{"])
def test_without_any_server_the_hint_says_how_to_get_one(
    content: str | None, prony_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prony_home.mkdir()
    if content is not None:
        (prony_home / "server.json").write_text(content)
    assert main(["agents"]) == 2
    assert "PRONY_SERVER" in capsys.readouterr().err


def test_without_a_named_server_the_list_is_of_this_machine_even_where_a_server_runs(
    server: Canned, monkeypatch: pytest.MonkeyPatch, prony_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PRONY_SERVER")
    prony_home.mkdir()
    (prony_home / "server.json").write_text(json.dumps({"url": server.url}))
    assert main(["list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert server.requests == []


def test_the_token_comes_from_the_environment_or_a_file_that_beats_it(
    server: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.says(EMPTY)
    main(["queue"])
    assert told(server) == ""
    monkeypatch.setenv("PRONY_TOKEN", "from-environment")
    main(["queue"])
    assert told(server) == "Bearer from-environment"
    (tmp_path / "token").write_text("from-file\n")
    main(["queue", "--token-file", str(tmp_path / "token")])
    assert told(server) == "Bearer from-file"


@pytest.mark.parametrize("content", [None, " \n", b"\xff\xfe"])
def test_a_file_without_a_token_is_named(
    content: str | bytes | None, server: Canned, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main(["queue", "--token-file", str(path)]) == 2
    assert str(path) in capsys.readouterr().err
    assert server.requests == []


def test_an_option_may_stand_before_or_after_the_word(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    server.says(document(page()))
    for words in (["agents", "--json"], ["agents", "--json", "list"], ["agents", "list", "--json"]):
        assert main(words) == 0
        assert json.loads(capsys.readouterr().out) == []


def test_what_needs_a_server_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text("name: x\nworkload: {kind: script, command: 'true'}\n")
    assert main(["run", str(recipe), "--detach"]) == 2
    assert "--detach needs a server or a target" in capsys.readouterr().err
    assert main(["run", str(recipe), "--priority", "1"]) == 2
    told = capsys.readouterr().err
    assert "--priority needs a server" in told
    assert "--on" not in told
