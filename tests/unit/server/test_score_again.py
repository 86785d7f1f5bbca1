"""Answers that a server keeps are scored again there; a scorer of the user's own runs beside whoever asks."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from prony.app.bench import Bench
from prony.cli.main import main
from prony.client import Client
from prony.instruments.kept_answers import SCORES, read_answers
from prony.load.mock.start import MockOptions, serve_mock
from prony.recipe import loads

from .house import House

MS = 10**6


@pytest.fixture(scope="module")
def scored(house: House) -> str:
    """Run 3 articles on a mock in the server's home; return the experiment."""
    with serve_mock(MockOptions(ttft_ns=MS, itl_ns=0, tokens=40, lead=True)) as mock:
        workload = {
            "kind": "service", "endpoint": mock.url, "driver": "openai-chat", "task": "summarize",
            "prompts": {"articles": 3, "output_tokens": 40},
        }  # fmt: skip
        load = {"repeats": 1, "warmup": "none", "requests": 3, "closed": {"concurrency": 3}}
        recipe = loads(json.dumps({"name": "scored", "workload": workload, "load": load}), "json", "the test")
        made = Bench(house.fleet.context.store).run(recipe, on_start=lambda *_: None, on_event=lambda _: None)
    return made.experiment.id


def estimates(house: House, experiment: str) -> dict[str, Any]:
    with Client(house.url) as client:
        (entry,) = client.experiments.results(experiment).entries
    return {key: one.value for key, one in entry.summary.estimates.items()}


def folder_of(house: House, experiment: str) -> Path:
    (record,) = house.fleet.context.store.records(experiment)
    return record.folder


def score(house: House, experiment: str, *words: str) -> int:
    return main(["score", experiment, "--server", house.url, *words])


def test_the_task_scores_what_the_folder_holds_now(house: House, scored: str) -> None:
    before = estimates(house, scored)
    path = folder_of(house, scored) / "outputs.jsonl"
    kept = path.read_text()
    lines = [json.loads(line) for line in kept.splitlines()]
    try:
        path.write_text("".join(json.dumps(one | {"output": one["references"][0]}) + "\n" for one in lines))
        assert score(house, scored) == 0
        assert estimates(house, scored)["rouge_1.mean"] == 1.0
    finally:
        path.write_text(kept)
    assert score(house, scored) == 0
    assert estimates(house, scored) == before


def test_a_scorer_of_ones_own_runs_beside_whoever_asks(house: House, scored: str, tmp_path: Path) -> None:
    (tmp_path / "here.py").write_text(
        f"from pathlib import Path\n\n\ndef words(answer):\n    Path({str(tmp_path / 'ran')!r}).touch()\n"
        "    return float(len(answer['output'].split()))\n"
    )
    assert score(house, scored, "--scorer", f"{tmp_path / 'here.py'}:words") == 0
    assert (tmp_path / "ran").exists()
    assert estimates(house, scored)["own_score.mean"] == 40.0
    assert len((folder_of(house, scored) / SCORES).read_text().splitlines()) == 3


def test_a_scorer_that_fails_leaves_the_scores_as_they_are(house: House, scored: str) -> None:
    before = estimates(house, scored)
    assert score(house, scored, "--scorer", shlex.join([sys.executable, "-c", "raise SystemExit(3)"])) != 0
    assert estimates(house, scored) == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"item": "no such item"}, "has no answer to 'no such item' in run 0, round 0"),
        ({"repetition": 7}, "in run 7, round 0"),
    ],
)
def test_scores_of_answers_that_are_not_there_are_refused(
    house: House, scored: str, change: dict[str, Any], said: str
) -> None:
    item = read_answers(folder_of(house, scored))[0].item
    told = {"repetition": 0, "item": item, "scores": {"score": 1.0}} | change
    answer = house.client.post(f"/api/v1/experiments/{scored}/score", json={"jobs": {f"{scored}-001": [told]}})
    assert answer.status_code == 422
    assert said in answer.json()["detail"]


def test_an_experiment_without_answers_is_told_so(house: House) -> None:
    answer = house.client.post(f"/api/v1/experiments/{house.experiment()}/score", json={})
    assert (answer.status_code, answer.json()["code"]) == (422, "no_answers")
