"""Servers on one database: whoever is alone knows it, and knows at once when it no longer is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest
from sqlalchemy import Engine, make_url

from prony.store import server_notes
from prony.store.postgres import server_engine
from prony.store.server_notes import Listener, send_notes
from prony.store.writer import ChangeNote
from servers.waiting import wait_for

QUICK = {"_BEAT_S": 0.05, "_PAUSE_S": 0.05, "_SILENCE_S": 0.5}


@pytest.fixture
def engine(lasting_url: str) -> Engine:
    return server_engine(make_url(lasting_url))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in QUICK.items():
        monkeypatch.setattr(server_notes, name, seconds)


def test_whoever_is_alone_knows_it_until_another_comes(engine: Engine) -> None:
    first = Listener(engine, lambda _: None)
    try:
        assert not first.is_alone  # it has not listened yet
        wait_for(lambda: first.is_alone)
        second = Listener(engine, lambda _: None)
        try:
            wait_for(lambda: not first.is_alone)
            assert not second.is_alone
        finally:
            second.close()
        wait_for(lambda: first.is_alone)
    finally:
        first.close()


def test_notes_of_one_are_heard_by_the_other_and_not_by_itself(engine: Engine) -> None:
    heard: dict[str, list[ChangeNote]] = {"one": [], "other": []}
    came = threading.Event()

    def hearing(name: str) -> Callable[[Sequence[ChangeNote]], None]:
        def hear(notes: Sequence[ChangeNote]) -> None:
            heard[name] += notes
            if any(note.topic == "lot" for note in notes):
                came.set()

        return hear

    one, other = Listener(engine, hearing("one")), Listener(engine, hearing("other"))
    try:
        wait_for(lambda: all(heard.values()))  # both have begun to hear
        with engine.begin() as connection:
            send_notes(connection, one.sender, [ChangeNote("lot", "l1", 3)])
        assert came.wait(120)
        assert ChangeNote("lot", "l1", 3) in heard["other"]
        assert [note for note in heard["one"] if note.topic == "lot"] == []
    finally:
        one.close()
        other.close()
