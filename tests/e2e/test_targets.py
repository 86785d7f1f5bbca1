"""`prony targets`, and a recipe that goes to one: as a person types it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from prony.store.lock import try_file_lock
from servers.commands import call_prony
from servers.waiting import wait_for

RECIPE = """\
name: there
workload:
  kind: script
  command: sh run.sh
  directory: work
  metrics: [{name: speed, pattern: "speed=([0-9]+)"}]
measure: {repeats: 1, warmup: 0}
place: {on: box}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "run.sh").write_text("echo speed=42\n")
    path = tmp_path / "there.yaml"
    path.write_text(RECIPE)
    return path


def add_box(tmp_path: Path) -> None:
    options: list[str | Path] = [
        "--prefix",
        tmp_path / "there",
        "--python",
        sys.executable,
        "--set",
        f"lock={tmp_path / 'lock'}",
    ]
    call_prony("targets", "add", "box", "--kind", "local", *options)


def test_a_target_is_added_listed_shown_and_removed(tmp_path: Path) -> None:
    assert "no targets yet" in call_prony("targets", "list").stderr
    add_box(tmp_path)
    (listed,) = json.loads(call_prony("targets", "list", "--json").stdout)
    assert (listed["name"], listed["kind"], listed["placed"]) == ("box", "local", 0)
    assert "no jobs were placed there" in call_prony("targets", "show", "box").stdout
    wrong = call_prony("targets", "add", "bad", "--kind", "slurm", "--set", "partitoin=x", code=2)
    assert "did you mean partition?" in wrong.stderr
    assert "nothing was left there" in call_prony("targets", "clean", "box").stdout
    call_prony("targets", "remove", "box")
    assert json.loads(call_prony("targets", "list", "--json").stdout) == []


def test_a_check_proves_a_target_by_a_job_and_says_what_is_missing(tmp_path: Path) -> None:
    add_box(tmp_path)
    checked = json.loads(call_prony("targets", "check", "box", "--json").stdout)
    assert checked["fit"] is True
    assert checked["lines"][-1]["title"] == "job"
    assert list((tmp_path / "there" / "runs").iterdir()) == []
    call_prony("targets", "add", "bare", "--kind", "local", "--prefix", tmp_path / "bare", "--python", "/no/python")
    bare = call_prony("targets", "check", "bare", code=3)
    assert "/no/python" in bare.stdout
    assert "prony targets install bare" in bare.stderr


def test_a_recipe_goes_to_its_target_and_comes_back(tmp_path: Path, recipe: Path) -> None:
    assert "no target is called 'box'" in call_prony("run", recipe, code=2).stderr
    add_box(tmp_path)
    call_prony("check", recipe, "--no-trial")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run.sh").write_text("echo speed=43\n")
    identity = call_prony("run", recipe, "--script", tmp_path / "other", "--detach").stdout.strip()
    assert json.loads(call_prony("targets", "list", "--json").stdout)[0]["placed"] == 1
    watched = call_prony("watch", identity, "--json")
    assert watched.stderr.count("| speed=43") == 1
    assert call_prony("logs", identity).stdout.count(" run-0000.out speed=43") == 1
    data = json.loads(watched.stdout)
    assert data["jobs"][0]["estimates"]["speed.mean"]["value"] == 43
    shown = call_prony("targets", "show", "box").stdout
    assert identity in shown
    assert "cleared" in shown
    assert "has ended" in call_prony("cancel", identity, code=2).stderr
    again = json.loads(call_prony("rerun", identity, "--no-report", "--json").stdout)
    assert again["experiment"]["rerun_of"] == identity


def test_a_run_that_is_cancelled_while_it_waits_for_its_machine_is_not_placed_again(
    tmp_path: Path, recipe: Path
) -> None:
    add_box(tmp_path)
    with try_file_lock(tmp_path / "lock") as is_held:
        assert is_held
        identity = call_prony("run", recipe, "--detach").stdout.strip()
        wait_for(lambda: list((tmp_path / "there" / "runs").glob("*/waiting")) != [], "it waits for the lock")
        call_prony("cancel", identity)
    call_prony("watch", identity, code=130)
    assert json.loads(call_prony("show", identity, "--json").stdout)["experiment"]["state"] == "cancelled"
    assert list((tmp_path / "there" / "runs").iterdir()) == []
    (placed,) = json.loads(call_prony("targets", "show", "box", "--json").stdout)["placements"]
    assert placed["ending"] == "cancelled"
