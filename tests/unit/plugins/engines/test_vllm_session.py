"""A session over vLLM's engine, with an engine that writes numbers by a rule."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from prony.errors import CapacityError, InputError, SutError
from prony.plugins.engines import vllm
from prony.plugins.engines.folder_tokenizer import FolderTokenizer
from prony.plugins.engines.vllm import VllmSession
from prony.ports.llm import LlmOptions

PROMPT = np.array([[7, 30, 99]], np.int32)


class CountingEngine:
    """Writes, to each request, its last id plus one in every step; `ahead` tokens come with the first of them."""

    def __init__(self, *, ahead: int = 0, most: int = 100) -> None:
        model = SimpleNamespace(
            max_model_len=most, dtype=SimpleNamespace(itemsize=2), get_num_kv_heads=lambda _: 2,
            get_head_size=lambda: 32, get_num_layers=lambda _: 4,
        )  # fmt: skip
        self.vllm_config = SimpleNamespace(model_config=model, parallel_config=None)
        self.requests: dict[str, list[int]] = {}
        self._ahead = ahead
        self.steps = 0

    def apply_model(self, count: Any) -> list[tuple[int, int | None]]:
        return [count(None)]

    def add_request(self, name: str, prompt: dict[str, Any], asked: Any) -> None:
        assert name not in self.requests
        self.requests[name] = [prompt["prompt_token_ids"][-1], min(asked.max_tokens, 100)]

    def abort_request(self, names: list[str]) -> None:
        for name in names:
            self.requests.pop(name, None)

    def has_unfinished_requests(self) -> bool:
        return bool(self.requests)

    def step(self) -> list[SimpleNamespace]:
        self.steps += 1
        return [*self._write(1 + self._ahead * (self.steps == 1))]

    def _write(self, count: int) -> Iterator[SimpleNamespace]:
        for name, (last, room) in list(self.requests.items()):
            written = [last + one for one in range(1, 1 + min(count, room))]
            self.requests[name] = [written[-1], room - len(written)]
            if not self.requests[name][1]:
                del self.requests[name]
            yield SimpleNamespace(request_id=name, outputs=[SimpleNamespace(token_ids=written)])


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of vLLM that a session uses."""
    package, parameters = ModuleType("vllm"), ModuleType("vllm.sampling_params")
    package.SamplingParams = SimpleNamespace  # type: ignore[attr-defined]
    parameters.RequestOutputKind = SimpleNamespace(DELTA=1, FINAL_ONLY=2)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", package)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", parameters)


def make_session(engine: CountingEngine) -> VllmSession:
    return VllmSession(engine, FolderTokenizer(None), ("cpu", None), lambda _: (10, 5))


@pytest.mark.parametrize("ahead", [0, 2])
def test_each_token_is_told_once_and_in_order(ahead: int) -> None:
    session, told = make_session(CountingEngine(ahead=ahead)), [0]
    first = session.prefill(PROMPT)
    written = session.generate(first, 4, lambda: told.append(told[-1] + 1))
    assert first.tolist() == [100]
    assert written.tolist() == [[101, 102, 103, 104]]
    assert told[-1] == 4
    assert session.kv_bytes() == (3 + 4) * 2 * 4 * 2 * 32 * 2


def test_sequences_of_a_batch_are_written_together() -> None:
    session = make_session(CountingEngine())
    first = session.prefill(np.array([[1, 2], [3, 40]], np.int32))
    assert first.tolist() == [3, 41]
    assert session.generate(first, 2, int).tolist() == [[4, 5], [42, 43]]


def test_a_prompt_that_vllm_takes_from_its_cache_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = CountingEngine()
    write = engine._write

    def write_cached(count: int) -> Iterator[SimpleNamespace]:
        for one in write(count):
            one.num_cached_tokens = 16
            yield one

    monkeypatch.setattr(engine, "_write", write_cached)
    with pytest.raises(SutError, match="16 tokens of the prompt") as told:
        make_session(engine).prefill(PROMPT)
    assert told.value.code == "cache_not_empty"


def test_an_emptied_cache_has_no_request_left_and_reads_again() -> None:
    engine = CountingEngine()
    session = make_session(engine)
    session.prefill(PROMPT)
    session.reset()
    assert not engine.requests
    assert session.kv_bytes() == 0
    assert session.prefill(PROMPT).tolist() == [100]


def test_a_token_that_it_wrote_itself_is_read_by_the_next_step() -> None:
    engine = CountingEngine()
    session = make_session(engine)
    session.prefill(PROMPT)
    assert session.prefill(np.array([[100]], np.int32)).tolist() == [101]
    assert engine.steps == 2


@pytest.mark.parametrize("ids", [[[5]], [[100, 101]]])
def test_nothing_else_is_read_behind_what_the_cache_holds(ids: list[list[int]]) -> None:
    session = make_session(CountingEngine())
    session.prefill(PROMPT)
    with pytest.raises(CapacityError, match="cannot read a prompt after tokens") as caught:
        session.prefill(np.array(ids, np.int32))
    assert caught.value.code == "engine_limit"


def test_a_sequence_that_ends_early_fails_instead_of_waiting_for_ever() -> None:
    session = make_session(CountingEngine(most=5))
    first = session.prefill(PROMPT)
    with pytest.raises(SutError, match="before all its tokens") as caught:
        session.generate(first, 4, int)
    assert caught.value.code == "token_count"


def test_an_option_that_is_on_or_off_takes_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm, "_device_kind", lambda: "cpu")
    with pytest.raises(InputError, match="option eager takes true or false, not 'no'"):
        vllm._check_options(LlmOptions(unit="cpu", options={"eager": "no"}))
