"""Histories over HTTP, asked by the commands as a person types them, of a server and of a home without one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from store.histories import fill, numbers

from prony.cli.main import main
from prony.store.home import Home
from prony.store.store import Store
from servers.waiting import wait_for

from .house import House, served

pytestmark = pytest.mark.parametrize("place", ["server", "home"])


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path | House]]:
    """A server and a home that have measured the same, with a change."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("server", "home")}
    for folder in folders.values():
        with Store.open(Home(folder)) as store:
            fill(store, numbers(30, change=24))
    with served(folders["server"], sweep_s=0.05) as house:
        yield {"server": house, "home": folders["home"]}


@pytest.fixture
def asked(place: str, lasting: dict[str, Path | House], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Have the commands ask there."""
    there = lasting[place]
    monkeypatch.delenv("PRONY_SERVER", raising=False)
    if isinstance(there, House):
        monkeypatch.setenv("PRONY_HOME", str(tmp_path))
        monkeypatch.setenv("PRONY_SERVER", there.url)
        wait_for(lambda: _is_judged(there), "the judgement", 180)
    else:
        monkeypatch.setenv("PRONY_HOME", str(there))
    return place


def _is_judged(house: House) -> bool:
    (series,) = house.client.get("/api/v1/series").json()["items"]
    return bool(series["runs"] == 30)


def test_a_history_is_listed_shown_drawn_and_told(
    asked: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["history", "--json"]) == 0
    (series,) = json.loads(capsys.readouterr().out)
    assert (series["name"], series["state"]) == ("quick", "regression")
    assert main(["history"]) == 0
    assert "regression" in capsys.readouterr().out
    for ending, begin in ((".svg", b"<svg xmlns="), (".png", b"\x89PNG"), (".html", b"<!doctype html>")):
        plot = tmp_path / f"plot{ending}"
        assert main(["history", series["id"][:8], "--plot", str(plot)]) == 0
        assert plot.read_bytes().startswith(begin)
    shown = capsys.readouterr().out
    assert "got worse by +" in shown
    assert "R" in shown.splitlines()[2]
    assert main(["history", "quick", "--metric", "nonsense"]) == 2
    assert main(["history", "nobody"]) == 2
    assert main(["history", "quick", "--plot", "x.gif"]) == 2


def test_a_regression_fails_a_build_until_somebody_knows_of_it(asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch-regressions", "--json"]) == 1
    (change,) = json.loads(capsys.readouterr().out)
    assert main(["watch-regressions"]) == 1
    assert change["sentence"] in capsys.readouterr().out
    assert main(["ack", change["id"][:6], "--reason", "meant", "--expected"]) == 0
    assert main(["ack", change["id"]]) == 2
    assert main(["watch-regressions", "--fail-on", "suspect"]) == 0
    assert "no open changes" in capsys.readouterr().err


def test_a_baseline_is_set_shown_and_cleared(asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["baseline", "show", "quick"]) == 2
    assert main(["baseline", "set", "quick", "--reason", "release", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["job_id"] == "run0029b1-0"
    assert main(["baseline", "show", "quick"]) == 0
    assert "run0029b1-0" in capsys.readouterr().out
    assert main(["baseline", "clear", "quick"]) == 0
    assert main(["baseline", "clear", "quick"]) == 2


def test_histories_are_made_again_where_their_home_is(asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--rebuild"]) == (2 if asked == "server" else 0)
    told = capsys.readouterr().err
    assert ("on its own machine" if asked == "server" else "30 results") in told
