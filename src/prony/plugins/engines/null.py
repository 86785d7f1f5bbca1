"""An engine that does nothing, or one fixed piece of arithmetic: the instrument measured by itself.

Its "model" is a name: `noop` returns at once, so that whatever is timed is Prony's own; `kernel` sorts and sums a fixed
array on one thread, so that whatever varies is the machine's own; `spin-500us` returns when so much time has passed, so
that what should be reported is known. As a language model, `llm-2us-500us` takes so long for each token that it reads
and for each that it writes; its tokens are bytes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from prony import __version__
from prony.errors import CapacityError, InputError
from prony.ports.engine import Array, Effect, EngineInfo, LoadOptions, Session, TensorSpec, Unit
from prony.ports.llm import NO_TEMPLATE, EncodedPrompt, LlmFacts, LlmOptions, hash_words, join_messages

_KERNEL_SIZE = 200_000
_SPIN = "spin-"
_LLM = re.compile(r"llm-([0-9]+)us-([0-9]+)us(?:-context([0-9]+))?")
_BYTES = 256
_KV_TOKEN_BYTES = 1024
_END = 0


class NullSession:
    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call

    def signature(self) -> list[TensorSpec]:
        return []

    def effect(self) -> Effect:
        return Effect(device="cpu", precision="none", threads=1)

    def bind(self, inputs: Mapping[str, Array]) -> Callable[[], Any]:  # noqa: ARG002 - it has none
        return self._call

    def outputs(self, raw: Any) -> dict[str, Array]:
        return {} if raw is None else {"sum": np.asarray(raw)}


class NullLlm:
    """Predicts each byte from the one before, by a fixed table, after a fixed time."""

    device_id: str | None = None

    def __init__(self, read_ns: int, write_ns: int, context: int, options: LlmOptions) -> None:
        self._read_ns, self._write_ns, self._context = read_ns, write_ns, context
        self._batch, self._precision = options.batch, options.precision
        table = np.random.Generator(np.random.PCG64(7)).standard_normal((_BYTES, _BYTES)).astype(np.float32)
        if options.precision == "int8":
            table = (np.round(table * 8) / 8).astype(np.float32)
        self._table, self._next = table, table.argmax(axis=1)
        self._held = 0

    def effect(self) -> Effect:
        return Effect(device="cpu", precision=self._precision, threads=1)

    def facts(self) -> LlmFacts:
        words = [bytes([one]) for one in range(_BYTES)]
        return LlmFacts("null", _BYTES, self._context, self._table.nbytes, _KV_TOKEN_BYTES,
                        parameters=self._table.size, tokenizer_sha256=hash_words(words))  # fmt: skip

    def tokenize(self, text: str) -> list[int]:
        return list(text.encode())

    def encode_prompt(self, messages: Sequence[Mapping[str, str]]) -> EncodedPrompt:
        return EncodedPrompt(self.tokenize(join_messages(messages)), NO_TEMPLATE)

    def detokenize(self, ids: Sequence[int]) -> str:
        return bytes(ids).decode(errors="replace")

    def end_ids(self) -> frozenset[int]:
        return frozenset({_END})

    def reset(self) -> None:
        self._held = 0

    def prefill(self, ids: Array) -> Array:
        is_step = self._held and ids.shape[1] == 1  # who reads one token behind others is writing
        _spin_for(self._write_ns if is_step else self._read_ns * ids.size)
        self._held += ids.shape[1]
        return np.asarray(self._next[ids[:, -1]])

    def generate(self, tokens: Array, count: int, on_token: Callable[[], object]) -> Array:
        written = np.empty((self._batch, count), np.int32)
        for step in range(count):
            if self._write_ns:
                _spin_for(self._write_ns)
            tokens = self._next[tokens]
            written[:, step] = tokens
            on_token()
        self._held += count
        return written

    def verify(self, ids: Array) -> Array:
        _spin_for(self._write_ns)  # a step takes as long as for one token, as on hardware that waits for its memory
        self._held += ids.size
        return np.asarray(self._next[ids])

    def rewind(self, length: int) -> None:
        self._held = length

    def logits(self, ids: Array) -> Array:
        return self._table[ids]

    def kv_bytes(self) -> int:
        return self._held * self._batch * _KV_TOKEN_BYTES


class Null:
    name: ClassVar[str] = "null"
    formats: ClassVar[tuple[str, ...]] = (".null",)
    reference_formats: ClassVar[tuple[str, ...]] = ()
    requirements: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = ""
    speculates: ClassVar[bool] = True

    def preload(self) -> str:
        return __version__

    def probe(self) -> EngineInfo:
        return EngineInfo(__version__, [Unit("cpu", "nothing, or a fixed kernel, on one thread", ("none",))])

    def load(self, path: str, options: LoadOptions) -> Session:
        if options.unit != "cpu":
            hint = "the null engine has only cpu"
            raise CapacityError(f"unknown unit {options.unit}", hint=hint, code="unit_unavailable")
        calls: dict[str, Callable[[], Any]] = {"noop": _nothing, "kernel": _kernel()}
        name = Path(path).stem
        if name.startswith(_SPIN):
            return NullSession(_spin(name))
        if name not in calls:
            raise InputError(f"the null engine has no model {name!r}", hint="use noop, kernel or spin-500us")
        return NullSession(calls[name])

    def load_llm(self, path: str, options: LlmOptions) -> NullLlm:
        if options.unit != "cpu":
            raise CapacityError(
                f"unknown unit {options.unit}", hint="the null engine has only cpu", code="unit_unavailable"
            )
        found = _LLM.fullmatch(Path(path).stem)
        if found is None:
            hint = "use for example llm-2us-500us: microseconds per token read and per token written"
            raise InputError(f"the null engine has no language model {Path(path).stem!r}", hint=hint)
        read_us, write_us, context = (int(number or 0) for number in found.groups())
        return NullLlm(1000 * read_us, 1000 * write_us, context, options)


def _nothing() -> None:
    return None


def _spin(name: str) -> Callable[[], Any]:
    digits = name.removeprefix(_SPIN).removesuffix("us")
    if not digits.isdecimal():
        raise InputError(
            f"the null engine has no model {name!r}", hint="write a time in microseconds, for example spin-500us"
        )
    return partial(_spin_for, 1000 * int(digits))


def _spin_for(lasting_ns: int) -> None:
    end_ns = time.perf_counter_ns() + lasting_ns
    while time.perf_counter_ns() < end_ns:
        pass


def _kernel() -> Callable[[], Any]:
    numbers = np.random.Generator(np.random.PCG64(7)).standard_normal(_KERNEL_SIZE)

    def call() -> Any:
        return np.sort(numbers).cumsum()[-1]

    return call
