"""Task: prompts from conversations, turn by turn.

What was said before a turn is the data set's own, not what the server answered: so every request can be made before the
load begins, and every run sends the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from prony.plugins.tasks.sharegpt import ConversationsOptions, Outputs, prompts_of, sessions
from prony.plugins.tokenizer import tokenizer_at
from prony.ports.driver import Prompt, Stamps


class ConversationOptions(ConversationsOptions):
    """How much of a conversation is asked."""

    max_turns: int | None = Field(default=None, ge=1, description="most turns per conversation; default: all")
    min_turns: int = Field(default=2, ge=1, description="skip conversations with fewer turns")


class Conversation:
    """Sessions of several turns, each with all that was said before it."""

    name: ClassVar[str] = "conversation"
    Options: ClassVar[type[Any]] = ConversationOptions

    def prompts(
        self,
        options: ConversationOptions,
        *,
        count: int,
        seeds: Mapping[str, int],
        base: Path,
        lengths: Stamps | None = None,
    ) -> Sequence[Prompt]:
        found = [one for one in sessions(options, seeds["prompts"], base) if len(one) >= options.min_turns]
        asked = [(number, turn) for number, one in enumerate(found) for turn in one[: options.max_turns]][:count]
        outputs = Outputs(seeds["lengths"], lengths)
        members = [number for number, _ in asked]
        return prompts_of([turn for _, turn in asked], members, options, tokenizer_at(options.tokenizer, base), outputs)
