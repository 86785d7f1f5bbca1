"""Drivers through the real load generator, at a server whose truth is known: tokens, stamps and every kind of fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prony.load.endpoint import parse_endpoint
from prony.load.generator import LoadPlan, generate
from prony.load.mock.start import MockOptions, serve_mock
from prony.load.outcome import LoadOutcome
from prony.load.schedule import plan
from prony.model.load import Closed, Load
from prony.plugins.drivers.ollama import Ollama
from prony.plugins.drivers.openai.chat import OpenAiChat
from prony.plugins.drivers.openai.completions import OpenAiCompletions
from prony.plugins.drivers.openai.embeddings import OpenAiEmbeddings
from prony.ports.driver import Cause, Digest, Driver, Prompt, Wants

PROMPTS = [Prompt(({"role": "user", "content": f"question {n}"},), max_tokens=12) for n in range(30)]
DRIVERS: tuple[tuple[type[Any], dict[str, Any]], ...] = (
    (OpenAiChat, {}),
    (OpenAiCompletions, {}),
    (Ollama, {}),
    (Ollama, {"api": "generate"}),
)


@pytest.fixture(scope="module")
def honest() -> Iterator[str]:
    with serve_mock(MockOptions(ttft_ns=10_000_000, itl_ns=2_000_000, tokens=12, split=True)) as mock:
        yield mock.url


def loaded(
    url: str, driver: Driver, scratch: Path, options: dict[str, Any]
) -> tuple[LoadOutcome, list[tuple[int, Digest]]]:
    """Send every prompt once, by three users; return what came and what it was."""
    endpoint = parse_endpoint(url)
    prepared = driver.prepare(Wants(endpoint, driver.Options(**options), seed=1, prompts=PROMPTS))
    load = Load(closed=Closed(concurrency=3), requests=len(prepared.requests))
    outcome = generate(LoadPlan(prepared, endpoint, plan(load, base=Path()), load, scratch))
    requests = [prepared.requests[number] for number in outcome.records["request"]]
    return outcome, [(row, driver.digest(requests[row], reply)) for row, reply in outcome.replies()]


@pytest.mark.parametrize(("driver", "options"), DRIVERS)
def test_streams_have_their_tokens_and_their_stamps(
    honest: str, tmp_path: Path, driver: type[Any], options: dict[str, Any]
) -> None:
    outcome, found = loaded(honest, driver(), tmp_path, options)
    assert Counter(digest.cause for _, digest in found) == {Cause.OK: len(PROMPTS)}
    assert {digest.output_tokens for _, digest in found} == {12}
    for row, digest in found:
        assert digest.token_ns is not None
        assert len(digest.token_ns) == 12
        assert np.all(np.diff(digest.token_ns) >= 0)
        first, end = outcome.records["first_ns"][row], outcome.records["end_ns"][row]
        assert first <= digest.token_ns[0] == digest.content_ns
        assert digest.token_ns[-1] <= end
        # No token can have come before it was sent: the mock waits so long before the first, and between two.
        assert digest.token_ns[-1] - outcome.records["sent_ns"][row] >= 10_000_000 + 11 * 2_000_000


def test_vectors_come_back(honest: str, tmp_path: Path) -> None:
    _, found = loaded(honest, OpenAiEmbeddings(), tmp_path, {"batch": 4})
    assert [digest.cause for _, digest in found] == [Cause.OK] * 8
    assert [digest.items for _, digest in found] == [4] * 7 + [2]


@pytest.mark.parametrize("driver", [OpenAiChat, OpenAiCompletions, Ollama])
def test_every_fault_is_found(tmp_path: Path, driver: type[Any]) -> None:
    faults = MockOptions(
        ttft_ns=0, itl_ns=0, tokens=12, tokens_per_chunk=5, errors=0.2, truncate=0.2, garbage=0.2, seed=3
    )
    with serve_mock(faults) as mock:
        outcome, found = loaded(mock.url, driver(), tmp_path, {})
    assert len(outcome) == len(PROMPTS)
    causes = Counter(digest.cause for _, digest in found)
    assert set(causes) == {Cause.OK, Cause.STATUS, Cause.TRUNCATED, Cause.MALFORMED}
    assert all(digest.detail for _, digest in found if digest.cause is not Cause.OK)
    assert {digest.output_tokens for _, digest in found if digest.cause is Cause.OK} == {12}
