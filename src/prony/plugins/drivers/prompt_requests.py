"""Build a driver's requests from prompts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prony.errors import InputError
from prony.plugins.drivers.answer import Asked, Counts
from prony.plugins.drivers.http.probe import HttpVersion, check_version, request_to, wire_of
from prony.plugins.tokenizer import tokenizer_at
from prony.ports.driver import Keeps, Prepared, Prompt, Request, Wants
from prony.ports.llm import join_messages


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
                call.streamed,
                prompt.input_tokens,
                text_bytes=len(join_messages(prompt.messages).encode()) if prompt.window else 0,
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


def encode_body(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def require_prompts(prompts: Sequence[Prompt], name: str) -> Sequence[Prompt]:
    if not prompts:
        raise InputError(f"{name} has no prompts", hint="check that the task's data set has prompts")
    return prompts
