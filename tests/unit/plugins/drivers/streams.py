"""Build cut and stamped replies for the tests of the LLM drivers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from prony.ports.driver import Reply

STEP_NS = 1_000_000


def event(value: Any) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"data: {text}\n\n".encode()


def chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a chunk as vLLM writes it."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
    return {
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": [choice], **more
    }  # fmt: skip


def usage(prompt: int, completion: int, **details: int) -> dict[str, Any]:
    told: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": completion}
    if details:
        told["completion_tokens_details"] = details
    return {"id": "chatcmpl-1", "choices": [], "usage": told}


DONE = event("[DONE]")


def in_pieces(pieces: Sequence[bytes], status: int = 200) -> Reply:
    """Return a reply whose pieces came one step after the other, the first at one step."""
    stamps = np.arange(1, len(pieces) + 1, dtype=np.int64) * STEP_NS
    return Reply(status, stamps, [len(piece) for piece in pieces], b"".join(pieces))


def cut_at(body: bytes, places: Sequence[int]) -> list[bytes]:
    """Return the body in pieces that end at the places."""
    edges = [0, *sorted({place % (len(body) + 1) for place in places}), len(body)]
    return [body[before:after] for before, after in pairwise(edges)]


def steps(*numbers: int) -> list[int]:
    return [number * STEP_NS for number in numbers]
