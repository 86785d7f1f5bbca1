"""Language models of the zoo: the same file every time, whose tokenizer gives back what it was given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from prony.errors import CapacityError
from prony.plugins.models.zoo import ZooSource
from prony.plugins.models.zoo.llm_cards import LLM_ZOO
from prony.ports.llm import SEEDED
from prony.ports.models import FOLDER, FetchOptions, ModelFiles

SIZES = {"llm-1m": 1e6, "llm-15m": 15e6, "llm-135m": 135e6, "llm-1b": 1.24e9, "llm-3b": 3.21e9, "llm-8b": 8.03e9}


def fetch(cache: Path, *formats: str) -> ModelFiles:
    return ZooSource().fetch("zoo:llm-1m", FetchOptions(cache=cache, formats=formats), lambda *_: None)


@pytest.mark.parametrize("name", LLM_ZOO)
def test_a_name_tells_the_number_of_weights(name: str) -> None:
    assert LLM_ZOO[name].parameters == pytest.approx(SIZES[name], rel=0.35 if name == "llm-1m" else 0.06)


def test_a_file_is_the_same_wherever_it_is_made(tmp_path: Path) -> None:
    first, second = (fetch(tmp_path / name, ".gguf").path.read_bytes() for name in ("a", "b"))
    assert first[:4] == b"GGUF"
    assert first == second


def test_a_folder_has_a_seed_for_weights_and_a_real_tokenizer(tmp_path: Path) -> None:
    found = fetch(tmp_path, FOLDER, ".gguf")
    assert json.loads((found.path / SEEDED).read_text()) == {"seed": 7}
    tokenizer = Tokenizer.from_file(str(found.path / "tokenizer.json"))
    text = "Measure the model twice, and say so. Größe: 3 µs."
    ids = tokenizer.encode(text).ids
    assert len(ids) <= len(text.encode()) / 2
    assert tokenizer.decode(ids) == text
    assert tokenizer.get_vocab_size() == json.loads((found.path / "config.json").read_text())["vocab_size"]


def test_it_is_no_model_for_other_engines(tmp_path: Path) -> None:
    with pytest.raises(CapacityError, match="cannot be built"):
        fetch(tmp_path, ".onnx")
