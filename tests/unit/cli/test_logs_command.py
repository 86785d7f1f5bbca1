"""`prony logs` on this machine: what it says where there is no log, or not all of it yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from store.nouns import experiment, jobs, running

from prony.cli.main import main
from prony.store.home import Home
from prony.store.store import Store


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("PRONY_HOME", str(tmp_path))
    monkeypatch.delenv("PRONY_SERVER", raising=False)
    with Store.open(Home(tmp_path)) as found:
        yield found


def write_log(store: Store, job_id: str, text: str) -> None:
    folder = store.home.result_folder("abc123def", job_id) / "logs"
    folder.mkdir(parents=True)
    (folder / "job.log").write_text(text)


def test_without_a_log_it_names_the_command_that_says_how_the_job_ended(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.save_experiment(experiment(), jobs())
    assert main(["logs", "abc"]) == 0
    assert capsys.readouterr().err == (
        "no log: nothing was printed, or it was deleted; `prony show abc123def` shows how it ended\n"
    )


def test_of_a_running_experiment_it_names_the_option_that_waits(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.save_experiment(running(), jobs())
    assert main(["logs", "abc"]) == 0
    assert capsys.readouterr().err.startswith("no log yet: nothing was printed so far; experiment abc123def still runs")
    write_log(store, "abc123def-0", "10:00 prony begun\n")
    assert main(["logs", "abc-0"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "10:00 prony begun\n"
    assert "--follow prints the rest" in printed.err


def test_where_no_line_matches_it_names_the_options_to_leave_out(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.save_experiment(experiment(), jobs())
    write_log(store, "abc123def-0", "10:00 prony begun\n")
    assert main(["logs", "abc-0", "--search", "absent"]) == 0
    assert "leave out --search and --source" in capsys.readouterr().err


def test_of_an_unknown_job_it_says_where_else_to_look(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "zz"]) == 2
    assert "for a job of a server, add --server URL" in capsys.readouterr().err
    store.save_experiment(experiment(), jobs())
    assert main(["logs", "abc-009"]) == 2
    assert "`prony show abc123def` shows its jobs" in capsys.readouterr().err
