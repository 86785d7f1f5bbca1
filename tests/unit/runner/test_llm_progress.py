"""How fast tokens come, while they come: noted by the engine's process between passes, and told by the runner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prony.app.runner import run_here
from prony.cli.progress import Lines
from prony.kinds.llm.child.progress import ProgressNote, TokenProgress
from prony.kinds.llm.child.suite import LlmSuite
from prony.kinds.llm.runner import live as live_module
from prony.kinds.llm.runner.live import ProgressReader
from prony.load.processes import ClientProcesses
from prony.model.event import Event, Live
from prony.plugins.engines.null import Null
from prony.recipe import loads
from prony.runner.child.loop import Stop
from prony.runner.child.readings import take_readings
from prony.store.home import Home

SECOND_NS = 10**9


def test_the_rate_is_of_what_was_added_and_read_at_most_once_a_second(tmp_path: Path) -> None:
    now_ns = 0
    note = ProgressNote(str(tmp_path / "note"))
    reader = ProgressReader(tmp_path / "note", run=2, clock_ns=lambda: now_ns)
    note.add(100, SECOND_NS)
    now_ns = SECOND_NS // 2
    assert reader.read() is None
    now_ns = 2 * SECOND_NS
    assert reader.read() == Live(
        run=2, elapsed_s=2, sent=2, done=1, failed=0, in_flight=1, rate_per_s=0.5, tokens_per_s=100
    )
    now_ns = 4 * SECOND_NS
    assert reader.read() is None
    note.add(30, SECOND_NS // 10)
    now_ns = 6 * SECOND_NS
    found = reader.read()
    assert found is not None
    assert (found.done, found.rate_per_s) == (2, 0.25)
    assert found.tokens_per_s == pytest.approx(300)


def test_nothing_is_told_before_the_first_pass_is_over(tmp_path: Path) -> None:
    times = iter((0, 2 * SECOND_NS))
    assert ProgressReader(tmp_path / "note", run=0, clock_ns=lambda: next(times)).read() is None


@pytest.mark.parametrize(("prompt", "generate", "tokens"), [(6, 5, 30), (6, 0, 36), (0, 5, 30)])
def test_passes_note_the_tokens_that_they_wrote_or_read(
    prompt: int, generate: int, tokens: int, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {
        "model": "llm-0us-0us.null", "unit": "cpu", "threads": 1, "precision": "default", "batch": 2, "depth": 0,
        "prompt": prompt, "generate": generate, "passes": 3, "seed": 0, "options": {}, "context": 16,
        "progress": str(tmp_path / "note"),
    }  # fmt: skip
    (test,) = LlmSuite(asked, Null()).tests()
    take_readings(test, 0, Stop())
    found = TokenProgress.read(tmp_path / "note")
    assert found is not None
    assert (found.done, found.tokens) == (3, tokens)


@pytest.mark.parametrize("task", [None, "summarize"])
def test_a_run_tells_its_tokens_a_second(task: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "_EVERY_NS", 0)
    model = tmp_path / "llm-0us-1000us.null"
    model.touch()
    workload: dict[str, Any] = {"kind": "llm", "engine": "null", "model": str(model), "generate": 20}
    if task is None:
        workload |= {"passes": 2, "prompt": 8}
    else:
        workload |= {"task": task, "prompts": {"articles": 2, "output_tokens": 20}}
    text = json.dumps({"name": "live", "workload": workload, "measure": {"repeats": 1, "warmup": 0}})
    (job,) = loads(text, "json", "the test").jobs("x1")
    events: list[Event] = []
    with ClientProcesses(ahead=0) as none:
        run_here([job], tmp_path / "result", Home(tmp_path / "home").create(), on_event=events.append, clients=none)
    lives = [one.live for one in events if one.live is not None]
    assert lives[-1].done == 2
    # A token takes a millisecond at least.
    assert all(one.tokens_per_s is not None and 0 < one.tokens_per_s <= 1000 for one in lives)


def test_a_line_shows_the_tokens_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    live = Live(elapsed_s=30, sent=13, done=12, failed=0, in_flight=1, rate_per_s=0.4, tokens_per_s=1234.5)
    Lines().event(Event(kind="load", job_id="j", live=live))
    assert capsys.readouterr().err == "  j: 1,234 tokens/s · 12 done\n"
