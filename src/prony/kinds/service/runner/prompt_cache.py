"""Keep a load of an LLM from meeting its own cache: salt the prompts, and reset, fill and read the server's cache."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

from prony.errors import PronyError
from prony.load.salts import SALT_WORDS, draw_words, salt_in, salt_size
from prony.model.clients import CacheFacts
from prony.model.load import Load
from prony.ports.driver import CacheCounts, ControlsCache, Driver, Prompt
from prony.runner.gang import Gang

_GAP = "\n\n"


def salt_prompts(prompts: Sequence[Prompt]) -> tuple[Prompt, ...]:
    """Put a salt before every prompt that has none of its own; one with a right answer, or one that is a text to be
    predicted, is asked as it stands.

    Where all begin with the same message, they share its salt, and what follows it has one of its own."""
    firsts = {prompt.messages[0]["content"] for prompt in prompts}
    is_shared = len(prompts) > 1 and len(firsts) == 1 and all(len(prompt.messages) > 1 for prompt in prompts)
    return tuple(
        _add_salt(prompt, is_shared=is_shared)
        if not prompt.salts and prompt.expected is None and not prompt.window
        else prompt
        for prompt in prompts
    )


def _add_salt(prompt: Prompt, *, is_shared: bool) -> Prompt:
    messages, salts = list(prompt.messages), list(prompt.salts)
    for place in range(1 + is_shared):
        words = draw_words(SALT_WORDS, salt_size(SALT_WORDS), f"message {place}")
        messages[place] = {**messages[place], "content": " ".join(words) + _GAP + messages[place]["content"]}
        salts += salt_in(words, SALT_WORDS, is_shared=is_shared and place == 0)
    # Each of the words is a token of its own, and so is the gap.
    more = sum(salt.text.count(" ") + 2 for salt in salts)
    tokens = None if prompt.input_tokens is None else prompt.input_tokens + more
    return replace(prompt, messages=tuple(messages), input_tokens=tokens, salts=tuple(salts))


class PromptCache:
    """What one job does about the cache of the server that it loads."""

    def __init__(self, load: Load, driver: Driver, gang: Gang | None) -> None:
        self._load = load
        self.driver = driver
        self._gang = gang
        self._is_first = gang is None or gang.part.index == gang.first_sender
        self._salt = ""
        self._shares_prefix = False
        self._before: CacheCounts | None = None
        self._facts = CacheFacts()

    def agree_on_salt(self, prompts: Sequence[Prompt]) -> None:
        """Choose what this job's salts are made of: new each time that it is carried out, and the same for a gang."""
        self._shares_prefix = any(
            prompt.session is not None or any(salt.is_shared for salt in prompt.salts) for prompt in prompts
        )
        if self._load.is_salted:
            mine = secrets.token_hex(8)
            self._salt = mine if self._gang is None else self._gang.agree_on_salt(mine)

    def begin_run(self, index: int) -> str:
        """Do before a run what the recipe asks for; return the run's salt, empty where it has none."""
        salt = f"{self._salt}-{index}" if self._salt else ""
        self._facts = CacheFacts(salt=salt, was_filled=self._load.cache == "warm", shares_prefix=self._shares_prefix)
        if self._load.cache == "cold" and self._is_first:
            self._facts = self._facts.model_copy(update=self._reset())
        self._before = self._counts()
        return salt

    def end_run(self) -> CacheFacts:
        """Return what was done, and what the server counted since."""
        before, after = self._before, self._counts()
        if before is None or after is None or after.queried_tokens < before.queried_tokens:
            return self._facts
        changes = {
            "server": after.server,
            "queried_tokens": after.queried_tokens - before.queried_tokens,
            "hit_tokens": after.hit_tokens - before.hit_tokens,
        }
        return self._facts.model_copy(update=changes)

    def _reset(self) -> dict[str, str]:
        if not isinstance(self.driver, ControlsCache):
            return {"reset_failure": f"the driver {self.driver.name} cannot empty a cache"}
        try:
            return {"reset_by": self.driver.reset_cache()}
        except PronyError as exc:
            return {"reset_failure": exc.message}

    def _counts(self) -> CacheCounts | None:
        return self.driver.read_cache_counts() if isinstance(self.driver, ControlsCache) else None
