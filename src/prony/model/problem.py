"""An error as it travels over HTTP."""

from __future__ import annotations

from typing import Any

from prony.model.base import Noun


class Problem(Noun):
    """`type` is `urn:prony:` and the code; `field` is the part of the request that is wrong; the rest is for people."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    hint: str = ""
    field: str = ""
    problems: tuple[dict[str, Any], ...] = ()
