"""A folder or file of a language model is found to be whole, or it is said what it lacks."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from prony.errors import InputError
from prony.kinds.llm.runner.files import check_model_files
from prony.plugins.models.zoo.llm import fetch_llm, write_gguf
from prony.plugins.models.zoo.llm_cards import LLM_ZOO
from prony.ports.models import FOLDER, GENAI_FOLDER, OPENVINO_FOLDER, FetchOptions
from prony.runner.gguf_header import read_gguf_facts


def safetensors(values: int = 4) -> bytes:
    head = json.dumps({"w": {"dtype": "F32", "shape": [values], "data_offsets": [0, 4 * values]}}).encode()
    return struct.pack("<Q", len(head)) + head + bytes(4 * values)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A whole model in Hugging Face's layout."""
    made = tmp_path / "words"
    made.mkdir()
    (made / "config.json").write_text(json.dumps({"max_position_embeddings": 1024}))
    (made / "tokenizer.json").write_text("{}")
    (made / "model.safetensors").write_bytes(safetensors())
    return made


def told_of(folder: Path, *, kind: str = FOLDER) -> str:
    with pytest.raises(InputError) as caught:
        check_model_files(folder, (kind,), wants_texts=True)
    assert caught.value.hint
    return caught.value.message


def test_whole_models_tell_their_context(folder: Path, tmp_path: Path) -> None:
    assert check_model_files(folder, (FOLDER,), wants_texts=True) == 1024
    write_gguf(LLM_ZOO["llm-1m"], tmp_path / "x.gguf")
    assert check_model_files(tmp_path / "x.gguf", (".gguf",), wants_texts=True) == 2048
    for kind in (FOLDER, GENAI_FOLDER):  # the first has no weights: they are made when it is loaded
        made = fetch_llm(LLM_ZOO["llm-1m"], FetchOptions(cache=tmp_path / kind, formats=(kind,)))
        assert check_model_files(made.path, (kind,), wants_texts=True) == 2048


def test_a_missing_tokenizer_is_told_to_those_who_ask_texts(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    assert check_model_files(folder, (FOLDER,), wants_texts=False) == 1024
    assert told_of(folder) == "words has no tokenizer"


def test_missing_and_damaged_weights_are_told(folder: Path) -> None:
    weights = folder / "model.safetensors"
    for data, told in (
        (safetensors()[:-1], "is cut short"), (safetensors()[:20], "is not a complete safetensors file"),
        (b"<html>not found</html>", "is not a complete safetensors file"), (b"", "is empty"),
    ):  # fmt: skip
        weights.write_bytes(data)
        assert told_of(folder) == f"words/model.safetensors {told}"
    weights.unlink()
    assert told_of(folder) == "words has no weights"
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": "model-1.safetensors"}}))
    assert told_of(folder) == "words/model-1.safetensors is missing"
    (folder / "config.json").write_text("{")
    assert told_of(folder).startswith("words/config.json is not JSON")


def test_folders_of_other_engines_need_their_graphs(tmp_path: Path) -> None:
    (tmp_path / "genai_config.json").write_text(json.dumps({"model": {"decoder": {"filename": "model.onnx"}}}))
    (tmp_path / "tokenizer.json").write_text("{}")
    assert told_of(tmp_path, kind=GENAI_FOLDER).endswith("/model.onnx is missing")
    (tmp_path / "openvino_model.xml").write_text("<net/>")
    assert told_of(tmp_path, kind=OPENVINO_FOLDER).endswith(" has no tokenizer")
    (tmp_path / "openvino_tokenizer.xml").write_text("<net/>")
    assert told_of(tmp_path, kind=OPENVINO_FOLDER).endswith("/openvino_model.bin is missing")


@pytest.mark.parametrize("tail", [b"", b"\xff" * 40, struct.pack("<IQQQ", 3, 1, 1, 2**62), b"\x03\0\0\0" + b"\1" * 60])
def test_a_damaged_head_of_a_gguf_file_is_told(tmp_path: Path, tail: bytes) -> None:
    (tmp_path / "x.gguf").write_bytes(b"GGUF" + tail)
    with pytest.raises(InputError) as caught:
        read_gguf_facts(tmp_path / "x.gguf")
    assert caught.value.message == "x.gguf is cut short"
