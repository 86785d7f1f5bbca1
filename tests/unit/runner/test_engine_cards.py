"""What an engine says of the devices it sees, asked in its own process."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.runner.engines import add_engine, ask_engine_cards


def test_an_engine_that_does_not_tell_says_so(tmp_path: Path) -> None:
    answer, trials = ask_engine_cards("null", tmp_path, tmp_path / "log", tries_products=True)
    assert (answer.state, answer.note, trials) == ("failed", "it did not report its GPUs", {})


@pytest.mark.slow
def test_torch_multiplies_on_the_cpu_in_each_format(tmp_path: Path, torch_python: str) -> None:
    add_engine("torch", tmp_path, python=torch_python)
    answer, trials = ask_engine_cards("torch", tmp_path, tmp_path / "log", tries_products=True)
    assert answer.state == "asked"
    assert answer.about["version"]
    tried = {one.format: one for one in trials["cpu"]}
    assert all(tried[name].worked for name in ("fp64", "fp32", "bf16"))
    assert not tried["tf32"].worked
    assert "tensor cores" in tried["tf32"].text
    assert trials.keys() == {"cpu"} | {str(card.get("uuid") or card["name"]) for card in answer.cards}
