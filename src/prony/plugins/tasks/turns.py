"""Extract the turns of a conversation from a row of a data set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prony.plugins.tasks.rows import Row

Turn = Mapping[str, str]
_ROLES = {"human": "user", "user": "user", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant",
          "bard": "assistant", "assistant": "assistant", "model": "assistant", "system": "system"}  # fmt: skip
# ShareGPT's layout, and that of OpenAI's messages: where the turns stand, who speaks, what is said.
_LAYOUTS = (("conversations", "from", "value"), ("conversation", "from", "value"), ("messages", "role", "content"))


def turns_of(row: Row) -> list[Turn]:
    """Return the turns of a conversation; [] where the row holds none that can be asked."""
    for place, who, what in _LAYOUTS:
        turns = row.get(place)
        if isinstance(turns, list):
            said = [_turn(turn, who, what) for turn in turns]
            return [turn for turn in said if turn is not None] if all(said) else []
    return []


def exchanges(turns: list[Turn]) -> list[tuple[tuple[Turn, ...], str]]:
    """Return what is asked, with all that was said before it, and the data set's own answer, for each exchange."""
    return [
        (tuple(turns[: index + 1]), turns[index + 1]["content"])
        for index in range(len(turns) - 1)
        if turns[index]["role"] == "user" and turns[index + 1]["role"] == "assistant"
    ]


def _turn(turn: Any, who: str, what: str) -> Turn | None:
    if not isinstance(turn, dict):
        return None
    role, content = turn.get(who), turn.get(what)
    known = _ROLES.get(role.lower()) if isinstance(role, str) else None
    return {"role": known, "content": content} if known is not None and isinstance(content, str) and content else None
