"""Answer what a task asks, greedily and under a clock, in the engine's child."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from prony.errors import SutError
from prony.kinds.llm.child.progress import ProgressNote
from prony.kinds.llm.child.quality import log_probabilities
from prony.kinds.llm.child.speculate import Drafter, speculate
from prony.kinds.llm.child.suite import describe_session, hash_ids, load_drafter, load_session, reset_memory_peak
from prony.ports.engine import Engine
from prony.ports.llm import empty_cache
from prony.runner.child.loop import Stop
from prony.runner.child.readings import SuiteTest

_WARM_TOKENS = 8
_PREDICTED = "plain text: each token is predicted from the ones before it"


def split_windows(count: int, window: int) -> Iterator[tuple[int, int, int]]:
    """Yield begin and end of each window of a text, and the first token that it predicts.

    Every token but the first is predicted once, and from at least half a window before it where there is so much.
    """
    begin, first = 0, 1
    while first < count:
        end = min(begin + window, count)
        yield begin, end, first
        begin, first = max(0, end - window // 2), end


def _count_timed(answer: Mapping[str, Any]) -> tuple[int, int]:
    """Return the tokens and the time behind a rate: those predicted, or those written after the first."""
    if "nat" in answer:
        begin_ns, end_ns = answer["prefill"]
        return answer["tokens"], end_ns - begin_ns
    stamps = answer["stamps"]
    return (len(stamps) - 1, stamps[-1] - stamps[0]) if stamps else (0, 0)


class EncodeSuite:
    """Conversations to ids, by the model's own tokenizer and template: once, before the runs of a job."""

    device_id: str | None = None
    settles = False

    def __init__(self, options: Mapping[str, Any], engine: Engine) -> None:
        self.asked = options
        self.session = load_session(options, engine)

    def tests(self) -> Iterator[SuiteTest]:
        """Return the one test."""
        yield SuiteTest("encode", "", lambda count: [0] * count, float, read=self._read)

    def facts(self) -> dict[str, Any]:
        """Return what the model was made for."""
        return {"context": self.session.facts().context}

    def close(self) -> None:
        """Let go of the model."""
        del self.session

    def _read(self, _: Stop) -> list[dict[str, Any]]:
        asked = json.loads(Path(self.asked["messages_file"]).read_text())
        if self.asked.get("are_texts"):
            return [{"ids": self.session.tokenize(one["content"]), "form": _PREDICTED} for (one,) in asked]
        encoded = [self.session.encode_prompt(messages) for messages in asked]
        return [{"ids": one.ids, "form": one.form} for one in encoded]


class AnswerSuite:
    """One prompt after the other into an empty cache, and an answer token by token to its end or its limit."""

    def __init__(self, options: Mapping[str, Any], engine: Engine) -> None:
        self.prompts: list[dict[str, Any]] = json.loads(Path(options["prompts_file"]).read_text())
        self.session = load_session(options, engine)
        self.drafter, self.width = load_drafter(options, engine, self.session), int(options.get("draft_tokens", 0))
        self.device_id = self.session.device_id
        self.settles = self.device_id is not None and bool(options.get("settles", True))
        self.ends = self.session.end_ids()
        self.kv_peak = self.tokens = 0
        self.progress = ProgressNote(options.get("progress", ""))

    def tests(self) -> Iterator[SuiteTest]:
        """Return the one test; a sample of it is the beginning of an answer, for the warm-up."""
        yield SuiteTest("answers", "", self._warm, float, read=self._read)

    def facts(self) -> dict[str, Any]:
        """Return what was used and what the model is."""
        ids = np.concatenate([np.asarray(one["ids"], np.int32) for one in self.prompts])
        return describe_session(self.session, {
            "prompt ids sha256": hash_ids(ids), "ids": f"of {len(self.prompts)} prompts, by the model's tokenizer",
            "sampling": "greedy, until the end token or the answer's limit", "kv_peak_bytes": str(self.kv_peak),
            "measured tokens": str(self.tokens),
        })  # fmt: skip

    def close(self) -> None:
        """Let go of the model."""
        del self.session

    def _warm(self, count: int) -> list[int]:
        first = self.prompts[0]
        taken = []
        for _ in range(count):
            begin_ns = time.perf_counter_ns()
            if first.get("window"):
                self.session.logits(np.asarray(first["ids"][:_WARM_TOKENS], np.int32))
                continue
            self._answer({**first, "most": min(_WARM_TOKENS, first["most"])})
            taken.append(time.perf_counter_ns() - begin_ns)
        return taken

    def _read(self, stop: Stop) -> list[dict[str, Any]]:
        reset_memory_peak(self.session)
        self.tokens = 0
        found: list[dict[str, Any]] = []
        for prompt in self.prompts:
            if stop.asked and found:
                break
            one = self._predict(prompt) if prompt.get("window") else self._answer(prompt)
            found.append(one)
            self.progress.add(*_count_timed(one))
        # Words are made when all is measured.
        return [one if "nat" in one else {**one, "text": self.session.detokenize(one.pop("ids"))} for one in found]

    def _predict(self, prompt: Mapping[str, Any]) -> dict[str, Any]:
        """Predict every token of a text but the first; `nat` is how unlikely they were, all together."""
        ids = np.asarray(prompt["ids"], np.int32)
        total = 0.0
        begin_ns = time.perf_counter_ns()
        for begin, end, first in split_windows(len(ids), prompt["window"]):
            logs = log_probabilities(self.session.logits(ids[begin : end - 1]))
            rows = np.arange(first - begin - 1, end - begin - 1)
            total -= float(logs[rows, ids[first:end]].sum())
        end_ns = time.perf_counter_ns()
        if not np.isfinite(total):
            hint = "try another precision or engine; check that the model file is complete"
            raise SutError("the model predicts NaN or infinity", hint=hint, code="not_finite")
        self.tokens += ids.size
        return {
            "prefill": (begin_ns, end_ns), "decode_begin_ns": end_ns, "stamps": [], "ended_ns": end_ns,
            "input_tokens": ids.size, "finish": "", "nat": total, "tokens": ids.size - 1,
        }  # fmt: skip

    def _answer(self, prompt: Mapping[str, Any]) -> dict[str, Any]:
        """Read a prompt and write its answer; the end mark is no part of it, and the first token comes of reading."""
        if self.drafter is not None:
            return self._answer_by_guesses(prompt, self.drafter)
        session, clock, most = self.session, time.perf_counter_ns, prompt["most"]
        ends = frozenset[int]() if prompt["goes_on"] else self.ends
        ids = np.asarray([prompt["ids"]], np.int32)
        empty_cache(session)
        begin_ns = clock()
        token = int(session.prefill(ids)[0])
        read_ns = at_ns = clock()
        written: list[int] = []
        stamps: list[int] = []
        while token not in ends and len(written) < most:
            written.append(token)
            stamps.append(at_ns)
            if len(written) < most:
                token = int(session.prefill(np.array([[token]], np.int32))[0])
                at_ns = clock()
        self.kv_peak = max(self.kv_peak, session.kv_bytes())
        self.tokens += ids.size + len(written)
        return {
            "prefill": (begin_ns, read_ns), "decode_begin_ns": read_ns, "stamps": stamps, "ended_ns": at_ns,
            "input_tokens": ids.size, "ids": written, "finish": "length" if len(written) == most else "stop",
        }  # fmt: skip

    def _answer_by_guesses(self, prompt: Mapping[str, Any], drafter: Drafter) -> dict[str, Any]:
        """The same by speculative decoding: all tokens of a step have its stamp; those behind the end are dropped."""
        session, clock, most = self.session, time.perf_counter_ns, prompt["most"]
        ends = frozenset[int]() if prompt["goes_on"] else self.ends
        ids = np.asarray([prompt["ids"]], np.int32)
        empty_cache(session)
        begin_ns = clock()
        text = [*prompt["ids"], int(session.prefill(ids)[0])]
        drafter.begin(text)
        read_ns = at_ns = clock()
        written, stamps, steps = [text[-1]], [at_ns], []
        if written[0] not in ends:
            for step in speculate(session, drafter, text, most - 1, self.width):
                at_ns = clock()
                written += step.tokens
                stamps += [at_ns] * len(step.tokens)
                steps.append((at_ns, len(step.tokens), step.drafted))
                if not ends.isdisjoint(step.tokens):
                    break
        count = next((at for at, one in enumerate(written) if one in ends), len(written))
        self.kv_peak = max(self.kv_peak, session.kv_bytes())
        self.tokens += ids.size + count
        return {
            "prefill": (begin_ns, read_ns), "decode_begin_ns": read_ns, "stamps": stamps[:count], "ended_ns": at_ns,
            "input_tokens": ids.size, "ids": written[:count], "finish": "length" if count == most else "stop",
            "steps": steps,
        }  # fmt: skip
