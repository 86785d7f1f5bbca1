"""Speculative decoding: guess several tokens, check all of them in one step, keep those that the model itself chooses.

The text is that of greedy decoding without guesses, up to ties that another order of sums decides. One sequence only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from prony.errors import CapacityError
from prony.ports.llm import LlmSession, VerifiesDrafts, empty_cache

NO_DRAFT, LOOKUP = "none", "lookup"
_LONGEST_MATCH = 3


@dataclass(frozen=True)
class VerifiedStep:
    """What one step of the model wrote, and how many tokens were guessed for it."""

    tokens: list[int]
    drafted: int


class Drafter(Protocol):
    """Guesses how a text goes on."""

    def begin(self, text: Sequence[int]) -> None:
        """Get ready for a new text, of which the last token was just written."""

    def propose(self, text: Sequence[int], most: int) -> list[int]:
        """Return up to `most` ids that may follow; none where it has no idea."""


class PromptLookup:
    """Guesses what followed the last tokens where they stood in the text before: no second model is needed."""

    def begin(self, text: Sequence[int]) -> None:
        """It keeps nothing."""

    def propose(self, text: Sequence[int], most: int) -> list[int]:
        for length in range(min(_LONGEST_MATCH, len(text) - 1), 0, -1):
            ending, found = list(text[-length:]), list[int]()
            for begin in range(len(text) - length - 1, -1, -1):
                if text[begin : begin + length] == ending:
                    # A text that goes round has a nearer match with less behind it.
                    found = max(found, list(text[begin + length : begin + length + most]), key=len)
                    if len(found) == most:
                        break
            if found:
                return found
        return []


class DraftModel:
    """Guesses by a smaller model, whose cache follows the text."""

    def __init__(self, session: LlmSession) -> None:
        self._session, self._verifier = session, require_verifier(session, "the draft model's engine")
        self._read: list[int] = []

    def begin(self, text: Sequence[int]) -> None:
        """Read all but the last token, as the model itself has done."""
        empty_cache(self._session)
        self._read = list(text[:-1])
        if self._read:
            self._session.prefill(np.asarray([self._read], np.int32))

    def propose(self, text: Sequence[int], most: int) -> list[int]:
        if not most:
            return []
        # Its own guesses of the last time stay in the cache as far as they were right.
        same = next((at for at, (one, other) in enumerate(zip(self._read, text, strict=False)) if one != other), None)
        same = min(len(self._read), len(text) - 1) if same is None else min(same, len(text) - 1)
        if same < len(self._read):
            self._verifier.rewind(same)
        token = int(self._session.prefill(np.asarray([text[same:]], np.int32))[0])
        found = [token]
        if most > 1:
            later = self._session.generate(np.array([token], np.int32), most - 1, lambda: None)
            found += [int(one) for one in later[0]]
        self._read = [*text, *found[:-1]]
        return found


def speculate(session: LlmSession, drafter: Drafter, text: list[int], most: int, width: int) -> Iterator[VerifiedStep]:
    """Yield step by step up to `most` tokens behind a text, and append them to it; the cache lacks its last token.

    Args:
        session: The model that decides.
        drafter: What guesses.
        text: The ids so far.
        most: How many tokens to write.
        width: The most tokens to guess for a step.
    """
    verifier = require_verifier(session, "this engine")
    left = most
    while left > 0:
        draft = drafter.propose(text, min(width, left - 1))
        chosen = verifier.verify(np.array([text[-1], *draft], np.int32)).tolist()
        right = next((at for at, one in enumerate(draft) if one != chosen[at]), len(draft))
        if right < len(draft):
            verifier.rewind(len(text) + right)
        text += chosen[: right + 1]
        left -= right + 1
        yield VerifiedStep(chosen[: right + 1], len(draft))


def require_verifier(session: LlmSession, engine: str) -> VerifiesDrafts:
    """Return the session as one that checks guesses."""
    if not isinstance(session, VerifiesDrafts):
        raise CapacityError(
            f"{engine} does not support speculative decoding in Prony",
            hint="use llamacpp, transformers or mlx, or remove workload.draft", code="draft_unavailable",
        )  # fmt: skip
    return session
