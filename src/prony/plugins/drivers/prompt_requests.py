"""Prepare a driver's requests: build them from prompts, or decide how many there are and which keys they use."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prony.errors import InputError
from prony.plugins.drivers.answer import Asked, Counts
from prony.plugins.drivers.http.probe import HttpVersion, check_version, request_to, wire_of
from prony.plugins.tokenizer import tokenizer_at
from prony.ports.driver import Keeps, Prepared, Prompt, Request, Wants


@dataclass(frozen=True)
class Call:
    """How every prompt of a load is asked."""

    path: str
    headers: Mapping[str, str]
    model: str
    operation: str
    streamed: bool
    version: HttpVersion = 1


def build_requests(wants: Wants, call: Call, body_of: Callable[[Prompt], Mapping[str, Any]]) -> Prepared:
    """Return a request for each prompt."""
    check_version(wants.endpoint, call.version)
    requests = [
        Request(
            request_to(wants.endpoint, "POST", call.path, call.headers, encode_body(body_of(prompt)), call.version),
            operation=call.operation,
            after=after,
            expected=prompt.expected,
            about=Asked(
                call.streamed, prompt.input_tokens, text_bytes=len(plain(prompt).encode()) if prompt.window else 0
            ),
            salts=prompt.salts,
        )
        for prompt, after in zip(wants.prompts, _previous_turns(wants.prompts), strict=True)
    ]
    notes = {"model": call.model, "prompts": str(len(requests)), "streamed": "yes" if call.streamed else "no"}
    return Prepared(requests, wire_of(call.version), keeps=Keeps.REPLY, notes=notes)


def counting(tokenizer: str | None, wants: Wants) -> Counts | None:
    """Return what counts tokens where the server does not; None where no tokenizer is named."""
    found = tokenizer_at(tokenizer, wants.base)
    return None if found is None else found.count


def _previous_turns(prompts: Sequence[Prompt]) -> list[int | None]:
    """Return, for each prompt, the one of the same session that must be answered before it."""
    last: dict[int, int] = {}
    before: list[int | None] = []
    for index, prompt in enumerate(prompts):
        before.append(None if prompt.session is None else last.get(prompt.session))
        if prompt.session is not None:
            last[prompt.session] = index
    return before


def plain(prompt: Prompt) -> str:
    """Return a prompt as one text: no template is known here, so messages are only put below each other."""
    return "\n\n".join(message["content"] for message in prompt.messages)


def encode_body(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def require_prompts(prompts: Sequence[Prompt], name: str) -> Sequence[Prompt]:
    if not prompts:
        raise InputError(f"{name} has nothing to ask", hint="does the task's data set hold any prompts?")
    return prompts


Numbers = np.ndarray[Any, np.dtype[np.int64]]

MOST_BYTES = 128 * 1024**2


def how_many(wants: Wants, distinct: int, *, bytes_each: int, least: int = 16) -> int:
    """Return how many to make: what is sent at most, what is asked for, what memory can hold; used again after that."""
    held = max(MOST_BYTES // max(bytes_each, 1), least)
    return max(min(distinct, held, wants.count or distinct), 1)


def pick_numbers(rng: np.random.Generator, among: int, count: int, *, skew: float) -> Numbers:
    """Return `count` numbers below `among`: evenly at skew 0, else the first most often (Zipf with that exponent)."""
    if skew == 0:
        return rng.integers(0, among, size=count)
    weights = np.arange(1, among + 1, dtype=np.float64) ** -skew
    edges = np.cumsum(weights)
    found = np.searchsorted(edges, rng.random(count) * edges[-1], side="right")
    numbers: Numbers = np.minimum(found, among - 1).astype(np.int64)
    return numbers


def shared_out(rng: np.random.Generator, shares: dict[str, float], count: int) -> list[str]:
    """Return `count` names, each as often as its share of the whole says, in a random order."""
    names = [name for name, share in shares.items() if share > 0]
    bounds = np.cumsum([shares[name] for name in names])
    ranks = np.searchsorted(bounds / bounds[-1], (np.arange(count) + 0.5) / count)
    return [names[rank] for rank in rng.permutation(np.minimum(ranks, len(names) - 1))]
