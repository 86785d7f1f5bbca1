"""Print as JSON what the transformers engine writes in each mode: run by an interpreter that has PyTorch.

`python -m servers.transformers_modes MODEL_FOLDER UNIT MODE ...`
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import numpy as np

from prony.errors import PronyError
from prony.kinds.llm.child.speculate import PromptLookup, speculate
from prony.plugins.engines.transformers import Transformers, TransformersSession
from prony.ports.llm import LlmOptions, empty_cache

_PROMPT = [7, 30, 99, 41, 200]
_COUNT = 24
_CONTEXT = 64


def main(folder: str, unit: str, modes: list[str]) -> None:
    found = {mode: describe_mode(folder, unit, mode) for mode in modes}
    sys.stdout.write(json.dumps(found))


def describe_mode(folder: str, unit: str, mode: str) -> dict[str, object]:
    def load(batch: int) -> TransformersSession:
        options = LlmOptions(unit=unit, batch=batch, context=_CONTEXT, precision="fp32", options={"mode": mode})
        return Transformers().load_llm(folder, options)

    try:
        one, three = load(1), load(3)
    except PronyError as exc:
        return {"error": str(exc), "hint": exc.hint}
    written = write(one, 1)
    return {
        "one": [written, write(one, 1)],
        "three": write(three, 3),
        "one_in_three": write(three, 1),
        "guessed": guess(one),
        "kv_tokens": count_cached(one),
        "emptied": count_emptied(one),
        "predicted": int(one.logits(np.array(_PROMPT, np.int32)).argmax(-1)[-1]),
        "details": dict(one.effect().details),
        "too_long": told(lambda: one.generate(np.array([5], np.int32), 2 * _CONTEXT, lambda: None)),
    }


def write(session: TransformersSession, rows: int) -> list[list[int]]:
    session.reset()
    first = session.prefill(np.array([_PROMPT] * rows, np.int32))
    after = session.generate(first, _COUNT, lambda: None)
    return [[int(begin), *map(int, row)] for begin, row in zip(first, after, strict=True)]


def guess(session: TransformersSession) -> list[int]:
    """Write the same text by guessed tokens: those that were wrong are taken back out of the cache."""
    session.reset()
    text = [*_PROMPT, int(session.prefill(np.array([_PROMPT], np.int32))[0])]
    drafter = PromptLookup()
    drafter.begin(text)
    list(speculate(session, drafter, text, _COUNT, 4))
    return text[len(_PROMPT) :]


def count_cached(session: TransformersSession) -> float:
    write(session, 1)
    return session.kv_bytes() / session.facts().kv_token_bytes


def count_emptied(session: TransformersSession) -> int:
    empty_cache(session)
    return session.kv_bytes()


def told(call: Callable[[], object]) -> str:
    try:
        call()
    except PronyError as exc:
        return str(exc)
    return ""


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
