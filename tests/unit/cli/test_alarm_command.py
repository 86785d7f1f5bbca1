"""`prony alarm` on a home without a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prony.cli.main import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_HOME", str(tmp_path))
    monkeypatch.delenv("PRONY_SERVER", raising=False)


def add(*words: str) -> int:
    return main(["alarm", "add", "mine", "--when", "experiment failed", *words])


def test_an_alarm_is_aimed_by_labels_and_an_owner(capsys: pytest.CaptureFixture[str]) -> None:
    assert add("--label", "team=vision", "--label", "stage=a=b", "--owner", "ana", "--recipe", "nightly") == 0
    capsys.readouterr()
    assert main(["alarm", "list", "--json"]) == 0
    (alarm,) = json.loads(capsys.readouterr().out)
    assert (alarm["labels"], alarm["owner"]) == ({"team": "vision", "stage": "a=b"}, "ana")
    assert main(["alarm", "list"]) == 0
    assert "nightly, team=vision, stage=a=b, by ana" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("label", ["team", "=vision", ""])
def test_a_label_without_a_key_or_a_sign_is_refused(label: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert add("--label", label) == 2
    assert "write --label KEY=VALUE" in capsys.readouterr().err


def test_an_owner_without_a_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert add("--owner", "") == 2
    assert "--owner" in capsys.readouterr().err
