"""Answers of a load are kept, scored from the folder, scored again, and compared in pairs."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from prony.analyse.compare.effect import conclude, item_effect
from prony.app.gates import worsening_between
from prony.app.results import summary_of
from prony.app.runner import run_here
from prony.errors import SutError
from prony.instruments.kept_answers import OUTPUTS, SCORES, read_answers
from prony.load.mock.start import MockOptions, serve_mock
from prony.load.processes import ClientProcesses
from prony.model.comparison import Conclusion, Effect
from prony.model.estimate import Estimate, Grade, Reason, Verdict, verdict_on
from prony.model.result import ResultState
from prony.recipe import loads
from prony.runner.scorer import ScorerOrder, run_scorer
from prony.store.folder import damage_in, read_nouns
from prony.store.home import Home

MS = 10**6
HANGS = f"{shlex.quote(sys.executable)} -c 'import time; time.sleep(1000)'"


def run(folder: Path, *, lead: bool = True, **prompts: Any) -> Path:
    """Run 9 articles twice on a mock, and return the result folder."""
    out = folder / "result"
    with serve_mock(MockOptions(ttft_ns=MS, itl_ns=0, tokens=60, lead=lead)) as mock, ClientProcesses(ahead=1) as ahead:
        workload = {
            "kind": "service", "endpoint": mock.url, "driver": "openai-chat", "task": "summarize",
            "prompts": {"articles": 9, "output_tokens": 60} | prompts,
        }  # fmt: skip
        load = {"repeats": 2, "warmup": "none", "requests": 9, "closed": {"concurrency": 3}}
        text = json.dumps({"name": "scored", "workload": workload, "load": load})
        (job,) = loads(text, "json", "the test").jobs("x1")
        run_here([job], out, Home(folder / "home").create(), on_event=lambda _: None, clients=ahead)
    return out


@pytest.fixture(scope="module")
def lead(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("lead"))


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("noise"), lead=False, scorer=HANGS, scorer_limit="1s")


def test_every_answer_of_every_run_is_kept_with_its_references(lead: Path) -> None:
    answers = read_answers(lead)
    assert len(answers) == 18
    assert all(one.is_whole and one.is_cut and one.parts[0].references for one in answers)
    (lever, _) = [one for one in answers if one.item == "lever"]
    assert lever.output.strip().startswith("A lever is a rigid bar that turns about a fixed point")


def test_scores_are_means_of_items_with_an_interval_over_items(lead: Path) -> None:
    summary = summary_of(lead)
    found = summary.estimates["rouge_1.mean"]
    assert found.count == len(summary.items["rouge_1.mean"]) == 9
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high
    assert 0.2 < found.value < 0.6
    assert summary.runs["rouge_1.mean"] == pytest.approx((found.value, found.value))
    assert summary.estimates["cut_share.mean"].value == 1.0
    assert summary_of(lead).estimates["rouge_1.mean"] == found


def test_a_changed_answer_is_a_damaged_result(lead: Path) -> None:
    contents = read_nouns(lead)
    assert damage_in(lead, contents.job, contents.result) is None
    kept = (lead / OUTPUTS).read_bytes()
    (lead / OUTPUTS).write_bytes(kept.replace(b"lever", b"level"))
    try:
        assert "is damaged" in str(damage_in(lead, contents.job, contents.result))
    finally:
        (lead / OUTPUTS).write_bytes(kept)


def test_a_scorer_that_hangs_is_killed_and_the_run_keeps_its_timings_and_scores(noise: Path) -> None:
    result = read_nouns(noise).result
    assert result.state is ResultState.COMPLETE
    assert result.service is not None
    assert "timed out after 1 s" in result.service.notes["scorer"]
    summary = summary_of(noise)
    assert "e2e_ms.p50" in summary.estimates
    assert "rouge_1.mean" in summary.estimates
    assert not (noise / SCORES).exists()


def test_a_worse_summariser_is_a_regression_by_pairs_of_items_and_the_same_one_is_equivalent(
    lead: Path, noise: Path
) -> None:
    good, bad = (summary_of(one).items["rouge_1.mean"] for one in (lead, noise))
    effect = item_effect(good, bad)
    assert isinstance(effect, Effect)
    assert (effect.counted, effect.runs) == ("items", (9, 9))
    assert effect.value < -0.1
    assert conclude(effect, "higher", 0.03) is Conclusion.REGRESSION
    same = item_effect(good, good)
    assert isinstance(same, Effect)
    assert conclude(same, "higher", 0.03) is Conclusion.EQUIVALENT
    assert "in common" in str(item_effect(good, {"other": 1.0}))
    lost = worsening_between("rouge_1.mean", summary_of(lead), summary_of(noise))
    assert isinstance(lost, Estimate)
    assert lost.low is not None
    assert lost.low > 0.5


def test_a_busy_machine_makes_times_void_and_leaves_scores(lead: Path) -> None:
    busy = Reason(code="contaminated", text="busy", grade=Grade.VOID)
    summary = summary_of(lead).model_copy(update={"verdict": Verdict(grade=Grade.VOID, reasons=(busy,))})
    assert verdict_on(summary, "e2e_ms.p50").grade is Grade.VOID
    assert verdict_on(summary, "rouge_1.mean").grade is Grade.VALID


def scorer(folder: Path, body: str) -> ScorerOrder:
    path = folder / "scorer.py"
    path.write_text(f"import json, sys\nfor line in sys.stdin:\n    one = json.loads(line)\n    {body}\n")
    return ScorerOrder(shlex.join([sys.executable, str(path)]), 60.0)


def test_a_scorer_gets_id_input_output_and_references_and_says_several_numbers(lead: Path, tmp_path: Path) -> None:
    answers = read_answers(lead)
    body = "print(json.dumps({'id': one['id'], 'score': len(one['references']), 'words': len(one['output'].split())}))"
    scores = run_scorer(scorer(tmp_path, body), answers)
    assert [one["words"] for one in scores] == [60.0] * 18
    assert [one["score"] for one in scores] == [len(one.parts[0].references) for one in answers]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("pass", "printed 0 lines for 18 answers"),
        ("print('good')", "its line 1 is not JSON"),
        ("print(json.dumps({'score': 'good'}))", "not a finite number"),
        ("print(json.dumps({'id': 'another', 'score': 1}))", "its line 1 has the id 'another'"),
        ("sys.exit('cannot')", "it ended with 1; its last output: cannot"),
    ],
)
def test_a_scorer_that_prints_something_else_is_told_so(lead: Path, tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises(SutError, match=said):
        run_scorer(scorer(tmp_path, body), read_answers(lead))


def test_a_scorer_that_is_not_there_is_told_so(lead: Path) -> None:
    with pytest.raises(SutError, match="it cannot be started"):
        run_scorer(ScorerOrder("/no/such/program", 1.0), read_answers(lead))
