"""Schedules and alarms as people use them: commands, servers as processes of their own, and one that is killed."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from chaos.fleet import Process, answers
from prony.client import Client
from prony.model.queue import Submission
from prony.model.schedule import NewSchedule
from servers.commands import call_prony
from servers.ports import free_port
from servers.receiver import Receiver, receiver
from servers.waiting import wait_for

RECIPE = (
    'name: nightly\nworkload: {kind: model, model: "zoo:noop", engine: "null"}\n'
    "measure: {runs: 5, repeats: 1, isolation: fork}\n"
)


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def prony(home: Path, *words: str) -> str:
    """Run a command to its end in this home; return what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PRONY_SERVER"}
    return call_prony(*words, environment=environment | {"PRONY_HOME": str(home)}).stdout


def server(home: Path, log: Path, *options: str) -> tuple[Process, str]:
    port = free_port()
    command = [sys.executable, "-m", "prony", "server", "--port", str(port), "--no-auth", *options]
    command += ["--alarm-window", "1ms", "--log-level", "debug"]  # whatever is logged has no secret in it
    return Process(command, os.environ | {"PRONY_HOME": str(home)}, log), f"http://127.0.0.1:{port}"


def started(stack: ExitStack, process: Process, url: str) -> None:
    process.start()
    stack.callback(process.kill)
    wait_for(lambda: answers(f"{url}/api/v1/health"), f"the server: {process.said()}", 120)


def test_of_two_real_servers_one_makes_the_experiment(tmp_path: Path, postgres_url: str) -> None:
    import psycopg

    home = tmp_path / "home"
    with ExitStack() as stack:
        clients = []
        for number in range(2):
            process, url = server(home, tmp_path / f"{number}.log", "--database", postgres_url)
            started(stack, process, url)
            clients.append(stack.enter_context(Client(url)))
        for number in range(5):
            new = NewSchedule(submission=Submission(text=RECIPE), cron="0 0 1 1 *", name=f"s{number}")
            clients[number % 2].schedules.add(new)
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("UPDATE schedule SET next_at = now() - interval '1 second'")
        for number in range(5):
            wait_for(lambda name=f"s{number}": bool(clients[0].schedules.fires(name).items), f"s{number} to fire")  # type: ignore[misc]
        made = clients[1].experiments.page().items
        assert len(made) == 5
        assert {len(clients[0].schedules.fires(f"s{number}").items) for number in range(5)} == {1}
        assert {len(clients[0].experiments.page(schedule=f"s{number}").items) for number in range(5)} == {1}


def test_a_server_that_is_killed_while_it_tells_is_followed_by_one_that_tells_again(
    tmp_path: Path, there: Receiver
) -> None:
    home, recipe = tmp_path / "home", tmp_path / "nightly.yaml"
    recipe.write_text(RECIPE)
    secret = prony(home, "alarm", "add", "ops", "--when", "schedule missed", "--to", there.url()).strip()
    assert len(secret) == 43
    prony(home, "schedule", "add", str(recipe), "--cron", "@yearly", "--missed", "skip")
    with closing(sqlite3.connect(home / "prony.db")) as connection, connection:
        connection.execute("UPDATE schedule SET next_at = '2020-01-01 00:00:00.000000'")
    process, url = server(home, tmp_path / "log")
    there.gate.clear()  # whoever is told does not answer
    with ExitStack() as stack:
        started(stack, process, url)
        (first,) = there.wait()
        assert "missed while no server was up" in first.json["text"]
        process.kill()
        there.gate.set()
        started(stack, process, url)
        again = there.wait()[-1]
        assert again.body == first.body
        assert again.headers["prony-delivery"] == first.headers["prony-delivery"]
        with Client(url) as client:
            wait_for(
                lambda: client.alarms.deliveries("ops").items[0].state == "delivered", "the delivery to be recorded"
            )
            (done,) = client.alarms.deliveries("ops").items
            assert [one.ok for one in done.tries] == [False, True]
            assert "sEcReT" not in done.model_dump_json()
    assert "sEcReT" not in process.said()
    assert secret not in process.said()
