"""Mock a prefix cache as vLLM has it: whole blocks of what prompts begin with, kept until they are reset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_MOST_BLOCKS = 1_000_000


class PrefixCache:
    """Blocks of so many words. The last word of a prompt is always computed."""

    def __init__(self, block: int) -> None:
        self._block = block
        self._known: set[int] = set()
        self.queried = self.hit = 0  # words, as the counters of a server have them

    def take(self, words: Sequence[str]) -> int:
        """Return how many words of a prompt are in the cache, and keep all of its whole blocks."""
        chain = list(self._chain(words))
        found = next((place for place, one in enumerate(chain) if one not in self._known), len(chain))
        if len(self._known) < _MOST_BLOCKS:
            self._known.update(chain)
        cached = min(found, (len(words) - 1) // self._block) * self._block if words else 0
        self.queried += len(words)
        self.hit += cached
        return cached

    def reset(self) -> None:
        self._known.clear()

    def _chain(self, words: Sequence[str]) -> Iterator[int]:
        """Yield for each whole block what names it together with all before it."""
        before = 0
        for end in range(self._block, len(words) + 1, self._block):
            before = hash((before, tuple(words[end - self._block : end])))
            yield before
