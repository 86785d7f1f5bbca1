"""Scripts as a person runs them: the example as it is, its report in every format, its history and a failed one."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from servers.commands import call_prony as prony

RECIPE = Path(__file__).parents[2] / "recipes" / "script.yaml"


@pytest.mark.slow
def test_the_example_runs_as_it_is_and_every_face_knows_its_numbers(tmp_path: Path) -> None:
    report = json.loads(prony("run", RECIPE, "--set", "measure.repeats=3", "--json").stdout)
    (job,) = report["jobs"]
    assert job["headline"] == "epoch_ms.p50"
    assert job["estimates"]["epoch_ms.p50"]["unit"] == "ms"
    assert job["estimates"]["slope.p50"]["value"] == pytest.approx(1.922, abs=0.01)
    assert job["metrics"]["loss"]["better"] == "lower"
    assert len(job["runs"]["loss.p50"]) == 3
    rows = list(csv.DictReader(prony("report", "--format", "csv").stdout.splitlines()))
    assert float(rows[0]["loss.p50"]) == job["estimates"]["loss.p50"]["value"]
    for form in ("md", "html", "junit", "github"):
        prony("report", "--format", form, "--out", tmp_path / f"report.{form}")
        assert "epoch" in (tmp_path / f"report.{form}").read_text() or form in ("junit", "github")
    assert "script" in prony("history").stdout
    identity = report["experiment"]["id"]
    assert "epoch_ms" in prony("matrix", identity, "--rows", "model", "--columns", "device", "--json").stdout
    prony("rerun", identity)


def test_a_script_that_fails_exits_1_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(
        "name: bad\nworkload: {kind: script, command: [sh, -c, 'echo no luck >&2; exit 7']}\nmeasure: {repeats: 2}\n"
    )
    done = prony("run", tmp_path / "recipe.yaml", code=1)
    assert "the script ended with exit code 7" in done.stdout + done.stderr


def test_what_is_wrong_with_a_script_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(
        "name: bad\nworkload:\n  kind: script\n  command: x\n  metrics: [{name: a, pattern: '(a)(b)'}]\n"
    )
    done = prony("run", tmp_path / "recipe.yaml", code=2)
    assert "recipe.yaml:5: workload.metrics[0].pattern: has 2 groups" in done.stderr
