"""Results that were measured without a server, sent to one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from prony.client import Client
from prony.errors import AccessError
from prony.model.access import NewToken, Role
from servers.commands import call_prony
from servers.prony import Served, prony_serving

RECIPE = """
name: sent
workload: {kind: script, command: "sh -c 'echo {\\\\\\"score\\\\\\": $X}'", metrics: [{name: score}]}
matrix: {workload.environment.X: ["1", "2"]}
measure: {repeats: 1}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with prony_serving(tmp_path_factory.mktemp("server") / "home") as served:
        yield served


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one experiment of two jobs, and an export of it beside it."""
    folder = tmp_path_factory.mktemp("here")
    (folder / "recipe.yaml").write_text(RECIPE)
    ask(folder / "home", "run", folder / "recipe.yaml")
    ask(folder / "home", "export", "last", "--to", folder / "export")
    return folder / "home"


def ask(home: Path, *words: str | Path, code: int = 0) -> str:
    done = call_prony(*words, code=code, environment=os.environ | {"PRONY_HOME": str(home)})
    return done.stdout + done.stderr


@pytest.fixture
def token(server: Served, tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(server.token)
    return path


def test_an_export_is_kept_by_the_server_and_in_its_histories(
    server: Served, home: Path, token: Path, tmp_path: Path
) -> None:
    there = ("--server", server.url, "--token-file", token)
    told = json.loads(ask(home, "import", home.parent / "export", "--json", *there))
    assert told["name"] == "sent"
    assert told == json.loads(ask(home, "import", home.parent / "export", "--json", *there))  # the same changes nothing
    mine = json.loads(ask(home, "show", told["id"], "--json"))
    found = json.loads(ask(home, "show", told["id"], "--json", *there))
    assert found["jobs"] == mine["jobs"]
    ids = {series["id"] for series in json.loads(ask(home, "history", "--json", *there))}
    assert {series["id"] for series in json.loads(ask(home, "history", "--json"))} <= ids
    assert not list((server.home / "uploads").glob("import-*"))


def test_an_experiment_of_this_machine_is_sent_by_its_id(server: Served, home: Path, token: Path) -> None:
    told = ask(home, "import", "last", "--server", server.url, "--token-file", token)
    assert told.startswith("imported sent as ")
    assert "no experiment 'nothing'" in ask(
        home, "import", "nothing", "--server", server.url, "--token-file", token, code=2
    )


def test_what_is_damaged_or_no_result_is_refused_and_nothing_is_kept(
    server: Served, home: Path, token: Path, tmp_path: Path
) -> None:
    there = ("--server", server.url, "--token-file", token)
    with Client(server.url, server.token) as client:
        before = len(client.experiments.page().items)
        spoilt = tmp_path / "spoilt"
        shutil.copytree(home.parent / "export", spoilt)
        (sample,) = list(spoilt.glob("jobs/*-001/result.json"))
        sample.write_text(sample.read_text() + " ")
        assert "is damaged: its checksum does not match MANIFEST.json" in ask(home, "import", spoilt, *there, code=3)
        (tmp_path / "empty").mkdir()
        assert "is neither an export nor a result folder" in ask(home, "import", tmp_path / "empty", *there, code=2)
        assert len(client.experiments.page().items) == before


def test_who_may_only_look_may_not_send(server: Served, home: Path) -> None:
    with Client(server.url, server.token) as client:
        viewer = client.tokens.add(NewToken(name="viewer", role=Role.VIEWER)).secret
    with Client(server.url, viewer) as client, pytest.raises(AccessError):
        client.experiments.import_(home.parent / "export")
