"""The transformers engine with its caches: one of fixed size writes what the growing one writes."""

from __future__ import annotations

import json
import os
import site
import subprocess
from pathlib import Path
from typing import Any

import pytest

from prony.plugins.models.zoo import ZooSource
from prony.ports.models import FOLDER, FetchOptions
from servers.needs import lack
from servers.packaged import environment

# The shorter form tries the engine with the cache that it usually has: `test_llm_engines`.
pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
SCRIPT = "servers.transformers_modes"


@pytest.fixture(scope="module")
def modes(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the engine writes in each mode, on the CPU."""
    library = environment().parent / "transformers"
    if not (library / "transformers").is_dir():
        lack("transformers", f"no transformers here: pip install --target {library} transformers")
    options = FetchOptions(cache=tmp_path_factory.mktemp("zoo"), formats=(FOLDER,))
    model = ZooSource().fetch("zoo:llm-1m", options, lambda *_: None).path
    places = [library, HERE.parent, HERE.parents[1] / "src", *map(Path, site.getsitepackages())]
    told = subprocess.run(
        [torch_python, "-m", SCRIPT, str(model), "cpu", "eager", "static", "graph", "quick"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places))}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def test_a_cache_of_fixed_size_changes_no_text(modes: dict[str, Any]) -> None:
    grown, fixed = modes["eager"], modes["static"]
    text = grown["one"][0][0]
    assert len(text) == 25
    assert len(set(text)) > 5
    assert fixed["one"] == grown["one"] == [[text], [text]]
    assert fixed["three"] == grown["three"] == [text] * 3
    assert fixed["one_in_three"] == grown["one_in_three"] == [text]
    assert fixed["guessed"] == grown["guessed"] == text
    assert fixed["predicted"] == grown["predicted"] == text[0]


def test_a_result_says_which_cache_it_was(modes: dict[str, Any]) -> None:
    assert (modes["eager"]["details"]["cache"], modes["static"]["details"]["cache"]) == ("dynamic", "static")
    assert (modes["eager"]["details"].get("mode"), modes["static"]["details"]["mode"]) == (None, "static")


def test_a_cache_of_fixed_size_counts_the_tokens_that_it_holds(modes: dict[str, Any]) -> None:
    assert modes["static"]["kv_tokens"] == modes["eager"]["kv_tokens"] == 29
    assert modes["static"]["emptied"] == modes["eager"]["emptied"] == 0


def test_more_than_a_fixed_cache_holds_is_refused(modes: dict[str, Any]) -> None:
    assert modes["static"]["too_long"] == "the fixed cache holds 64 tokens, and 65 are needed"
    assert modes["eager"]["too_long"] == ""


def test_a_mode_that_cannot_be_had_is_refused_with_what_can(modes: dict[str, Any]) -> None:
    assert modes["graph"] == {
        "error": "mode: graph needs a CUDA device",
        "hint": "use mode: static, or unit: cuda",
    }
    assert modes["quick"] == {
        "error": "option mode has the unknown value 'quick'",
        "hint": "use one of eager, static, graph",
    }
