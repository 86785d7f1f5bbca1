"""Collect the answers of one run, to be scored when it is over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from prony.model.answer import KeptAnswer
from prony.ports.driver import Cause, Digest, Prompt

# What is wrong with it is what a score says.
_ANSWERED = (Cause.OK, Cause.CONTENT)


class AnswerKeeper:
    """Holds what was answered to each prompt; a request's number says which, and how often they were asked before."""

    def __init__(self, prompts: Sequence[Prompt], repetition: int) -> None:
        self._prompts = prompts
        self._repetition = repetition
        self._heard: dict[int, Digest] = {}

    def add(self, number: int, digest: Digest) -> None:
        self._heard[number] = digest

    def close(self, sent: Iterable[int]) -> Iterator[KeptAnswer]:
        """Yield a line for each request that was sent, in their order; what was not answered says so."""
        for number in sorted(set(sent)):
            prompt = self._prompts[number % len(self._prompts)]
            if prompt.item is not None:
                yield self._keep(prompt, number, self._heard.get(number))

    def _keep(self, prompt: Prompt, number: int, digest: Digest | None) -> KeptAnswer:
        item = prompt.item
        assert item is not None
        failed = "no complete reply"
        if digest is not None:
            failed = "" if digest.cause in _ANSWERED else digest.detail or digest.cause.name.lower()
        return KeptAnswer(
            repetition=self._repetition, round=number // len(self._prompts),
            item=item.name, part=item.part, parts=item.parts,
            input=prompt.messages[-1]["content"], references=item.references, left_out_words=item.left_out_words,
            output="" if digest is None else digest.text, finish="" if digest is None else digest.finish,
            output_tokens=None if digest is None else digest.output_tokens, failed=failed,
        )  # fmt: skip
