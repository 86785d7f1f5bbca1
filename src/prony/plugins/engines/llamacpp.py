"""llama.cpp in this process, by the C functions that the library of the package `xllamacpp` exports.

The package has wheels for every usual system, and no compiler is needed. Its own Python interface is that of a server;
the functions below it read and write single tokens, so that a stamp is the arrival of one.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from prony.errors import CapacityError, InputError, SutError
from prony.ports.engine import Array, Effect, EngineInfo, LoadOptions, Session, Unit
from prony.ports.llm import (
    CHAT_TEMPLATE,
    NO_TEMPLATE,
    EncodedPrompt,
    LlmFacts,
    LlmOptions,
    describe_load_failure,
    hash_words,
    join_messages,
    refuse_as_model,
)

_MAGIC = b"GGUF"
_UBATCH = 512
_PLACE = re.compile(r"^(\w+: |error loading model: )+")  # of a line in its log: the function that wrote it
# The first words of a context's parameters as this code sets them, with what they are when nobody has set them:
# tokens of context, of a batch, of a physical batch, and sequences.
_DEFAULTS = (512, 2048, 512, 1)
_OWN_LAYERS = 2**32 - 1  # as many layers on a GPU as fit
# Where the parameters of a context have the use of flash attention, and the types of keys and of values.
_FLASH_AT, _TYPES_AT = 13, 26
_KV_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "bf16": 30}
_LAYERS_AT = 4  # where the parameters of a model have that number, after two pointers
_Reference = ctypes.c_void_p
_LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_ERROR = 4  # the level of errors; above it is only what goes on with another line, such as dots of progress


class _Parameters(ctypes.Structure):
    """Parameters by value, whose size is the library's business: more room than any version has used."""

    _fields_ = (("words", ctypes.c_uint32 * 256),)


class _Batch(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)), ("embedding", ctypes.c_void_p),
        ("position", ctypes.POINTER(ctypes.c_int32)), ("sequences", ctypes.POINTER(ctypes.c_int32)),
        ("sequence", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))), ("is_wanted", ctypes.POINTER(ctypes.c_int8)),
    )  # fmt: skip


class _Message(ctypes.Structure):
    _fields_ = (("role", ctypes.c_char_p), ("content", ctypes.c_char_p))


# Name, result, arguments.
_FUNCTIONS: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
    ("llama_backend_init", None, ()),
    ("llama_log_set", None, (_LOG, _Reference)),
    ("llama_print_system_info", ctypes.c_char_p, ()),
    ("llama_supports_gpu_offload", ctypes.c_bool, ()),
    ("llama_model_default_params", _Parameters, ()),
    ("llama_context_default_params", _Parameters, ()),
    ("llama_model_load_from_file", _Reference, (ctypes.c_char_p, _Parameters)),
    ("llama_init_from_model", _Reference, (_Reference, _Parameters)),
    ("llama_free", None, (_Reference,)),
    ("llama_model_free", None, (_Reference,)),
    ("llama_model_size", ctypes.c_uint64, (_Reference,)),
    ("llama_model_n_params", ctypes.c_uint64, (_Reference,)),
    ("llama_model_n_ctx_train", ctypes.c_int32, (_Reference,)),
    ("llama_model_desc", ctypes.c_int32, (_Reference, ctypes.c_char_p, ctypes.c_size_t)),
    ("llama_model_chat_template", ctypes.c_char_p, (_Reference, ctypes.c_char_p)),
    ("llama_model_get_vocab", _Reference, (_Reference,)),
    ("llama_vocab_n_tokens", ctypes.c_int32, (_Reference,)),
    ("llama_vocab_type", ctypes.c_int, (_Reference,)),
    ("llama_vocab_get_text", ctypes.c_char_p, (_Reference, ctypes.c_int32)),
    ("llama_tokenize", ctypes.c_int32,
     (_Reference, ctypes.c_char_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32), ctypes.c_int32, ctypes.c_bool,
      ctypes.c_bool)),
    ("llama_detokenize", ctypes.c_int32,
     (_Reference, ctypes.POINTER(ctypes.c_int32), ctypes.c_int32, ctypes.c_char_p, ctypes.c_int32, ctypes.c_bool,
      ctypes.c_bool)),
    ("llama_vocab_is_eog", ctypes.c_bool, (_Reference, ctypes.c_int32)),
    ("llama_chat_apply_template", ctypes.c_int32,
     (ctypes.c_char_p, ctypes.POINTER(_Message), ctypes.c_size_t, ctypes.c_bool, ctypes.c_char_p, ctypes.c_int32)),
    ("llama_set_n_threads", None, (_Reference, ctypes.c_int32, ctypes.c_int32)),
    ("llama_n_threads", ctypes.c_int32, (_Reference,)),
    ("llama_n_ctx", ctypes.c_uint32, (_Reference,)),
    ("llama_get_memory", _Reference, (_Reference,)),
    ("llama_memory_clear", None, (_Reference, ctypes.c_bool)),
    ("llama_memory_seq_rm", ctypes.c_bool, (_Reference, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)),
    ("llama_memory_seq_pos_max", ctypes.c_int32, (_Reference, ctypes.c_int32)),
    ("llama_state_seq_get_size", ctypes.c_size_t, (_Reference, ctypes.c_int32)),
    ("llama_batch_init", _Batch, (ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)),
    ("llama_batch_free", None, (_Batch,)),
    ("llama_decode", ctypes.c_int32, (_Reference, _Batch)),
    ("llama_synchronize", None, (_Reference,)),
    ("llama_get_logits_ith", ctypes.c_void_p, (_Reference, ctypes.c_int32)),
)  # fmt: skip


class _Library:
    """The C functions, and the errors that they wrote to their log."""

    def __init__(self, path: str) -> None:
        self.loaded = ctypes.CDLL(path)
        for name, result, arguments in _FUNCTIONS:
            try:
                function = getattr(self.loaded, name)
            except AttributeError as exc:
                raise CapacityError(
                    f"the library of xllamacpp has no {name}", hint="prony engines add llamacpp", code="engine_broken"
                ) from exc
            function.restype, function.argtypes = result, arguments
        self.errors: list[str] = []
        self._log = _LOG(self._hear)  # kept: the library calls it as long as it lives

    def begin(self) -> None:
        """Start its back end; the spawner does not, because that may start threads."""
        self.loaded.llama_log_set(self._log, None)
        self.loaded.llama_backend_init()

    def _hear(self, level: int, text: bytes | None, _: object) -> None:
        if level == _ERROR and text:
            self.errors.append(text.decode(errors="replace").strip())

    def context_parameters(self) -> _Parameters:
        """Return the parameters of a context, where they stand as this code expects them."""
        made: _Parameters = self.loaded.llama_context_default_params()
        if tuple(made.words[: len(_DEFAULTS)]) != _DEFAULTS:
            raise CapacityError(
                "this version of xllamacpp has another parameter layout",
                hint='prony engines add llamacpp --package "xllamacpp<2026.11"', code="engine_broken",
            )  # fmt: skip
        return made


class LlamaSession:
    """A GGUF file with a cache for so many sequences of so many tokens."""

    device_id: str | None = None

    def __init__(self, library: _Library, path: str, options: LlmOptions) -> None:
        self._library, self._c, self._options = library, library.loaded, options
        self._model = self._load(path)
        self._vocabulary = self._c.llama_model_get_vocab(self._model)
        self._size = int(self._c.llama_vocab_n_tokens(self._vocabulary))
        self._row: Any = ctypes.c_float * self._size
        asked = library.context_parameters()
        each = _round_up(options.context)
        for place, value in enumerate((each * options.batch, max(2048, options.batch), _UBATCH, options.batch)):
            asked.words[place] = value
        _set_cache_type(asked, options.kv_type)
        self._context = self._c.llama_init_from_model(self._model, asked)
        if not self._context:
            said = f"llama.cpp could not create a context of {each} tokens for {options.batch} sequences: {self._why()}"
            if "n_seq_max" in said:
                raise CapacityError(said, hint="use fewer sequences", code="engine_limit")
            raise SutError(said, hint="use fewer sequences or a shorter context", code="out_of_memory")
        self._c.llama_set_n_threads(self._context, options.threads, options.threads)
        self._memory = self._c.llama_get_memory(self._context)
        self._room = max(2048, options.batch)
        self._batch: _Batch = self._c.llama_batch_init(self._room, 0, 1)
        self._held = 0
        self._empty_bytes = int(self._c.llama_state_seq_get_size(self._context, 0))
        self._token_bytes = self._measure_token()

    def _load(self, path: str) -> Any:
        with Path(path).open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise InputError(
                    f"{path} is not a GGUF file", hint="a GGUF file starts with the letters GGUF", code="damaged_model"
                )
        asked = self._c.llama_model_default_params()
        asked.words[_LAYERS_AT] = 0 if self._options.unit == "cpu" else _OWN_LAYERS
        found = self._c.llama_model_load_from_file(os.fsencode(path), asked)
        if not found:
            raise describe_load_failure("llama.cpp", Path(path).name, self._why())
        return found

    def _why(self) -> str:
        """Return what went wrong first: what the library says afterwards is what came of it."""
        plain = [_PLACE.sub("", one) for one in self._library.errors]
        return next((one for one in plain if not one.startswith("failed to load model")), "no reason given")

    def _measure_token(self) -> int:
        """Return what one more token adds to the cache, by the size of a saved sequence."""
        self.reset()
        sizes = []
        for _ in range(2):
            self._read(np.zeros((self._options.batch, 1), np.int32))
            sizes.append(int(self._c.llama_state_seq_get_size(self._context, 0)))
        self.reset()
        return sizes[1] - sizes[0]

    def effect(self) -> Effect:
        described = ctypes.create_string_buffer(256)
        self._c.llama_model_desc(self._model, described, len(described))
        kv_type = self._options.kv_type
        info = (self._c.llama_print_system_info() or b"").decode(errors="replace").strip()
        return Effect(
            device=self._options.unit, precision=_weights_type(described.value.decode(errors="replace")),
            threads=int(self._c.llama_n_threads(self._context)),
            details={
                "build": info, "context": str(self._c.llama_n_ctx(self._context)), "physical batch": str(_UBATCH),
                **({"cache": f"{kv_type}, flash attention"} if kv_type != "default" else {}),
            },
        )  # fmt: skip

    def facts(self) -> LlmFacts:
        described = ctypes.create_string_buffer(256)
        self._c.llama_model_desc(self._model, described, len(described))
        words = [self._c.llama_vocab_get_text(self._vocabulary, one) or b"" for one in range(self._size)]
        template = self._c.llama_model_chat_template(self._model, None)
        return LlmFacts(
            architecture=described.value.decode(errors="replace"), vocabulary=self._size,
            context=int(self._c.llama_model_n_ctx_train(self._model)),
            weights_bytes=int(self._c.llama_model_size(self._model)), kv_token_bytes=self._token_bytes,
            parameters=int(self._c.llama_model_n_params(self._model)), tokenizer_sha256=hash_words(words),
            template_sha256=hash_words([template]) if template else "",
        )  # fmt: skip

    def tokenize(self, text: str) -> list[int]:
        return self._tokenize(text, with_marks=False)

    def _tokenize(self, text: str, *, with_marks: bool) -> list[int]:
        if not self._c.llama_vocab_type(self._vocabulary):
            raise InputError(
                "the GGUF file has no tokenizer",
                hint="convert the model again from a folder that has its tokenizer",
                code="no_tokenizer",
            )
        data = text.encode()
        room = (ctypes.c_int32 * (len(data) + 8))()
        count = self._c.llama_tokenize(self._vocabulary, data, len(data), room, len(room), with_marks, with_marks)
        return list(room[: max(0, count)])

    def encode_prompt(self, messages: Sequence[Mapping[str, str]]) -> EncodedPrompt:
        text, form = self._apply_template(messages)
        return EncodedPrompt(self._tokenize(text, with_marks=True), form)

    def _apply_template(self, messages: Sequence[Mapping[str, str]]) -> tuple[str, str]:
        """Return the conversation in the model's template, where it is one that llama.cpp knows; it runs no others."""
        template = self._c.llama_model_chat_template(self._model, None)
        if not template:
            return join_messages(messages), NO_TEMPLATE
        pairs = [_Message(one["role"].encode(), one["content"].encode()) for one in messages]
        given = (_Message * len(pairs))(*pairs)
        room = ctypes.create_string_buffer(4096 + 2 * sum(len(one["content"].encode()) for one in messages))
        size = self._c.llama_chat_apply_template(template, given, len(messages), True, room, len(room))
        if not 0 <= size <= len(room):
            return join_messages(messages), "plain text: llama.cpp does not know the model's chat template"
        return room.raw[:size].decode(errors="replace"), CHAT_TEMPLATE

    def detokenize(self, ids: Sequence[int]) -> str:
        given = (ctypes.c_int32 * len(ids))(*ids)
        room = ctypes.create_string_buffer(64 + 32 * len(ids))
        size = self._c.llama_detokenize(self._vocabulary, given, len(ids), room, len(room), True, False)
        if size < 0:  # it says how much room it needs
            room = ctypes.create_string_buffer(-size)
            size = self._c.llama_detokenize(self._vocabulary, given, len(ids), room, len(room), True, False)
        return room.raw[: max(0, size)].decode(errors="replace")

    def end_ids(self) -> frozenset[int]:
        return frozenset(one for one in range(self._size) if self._c.llama_vocab_is_eog(self._vocabulary, one))

    def reset(self) -> None:
        self._c.llama_memory_clear(self._memory, False)
        self._held = 0

    def prefill(self, ids: Array) -> Array:
        at = self._read(ids)
        return np.array([self._logits(place).argmax() for place in at], np.int32)

    def generate(self, tokens: Array, count: int, on_token: Callable[[], object]) -> Array:
        written = np.empty((len(tokens), count), np.int32)
        if len(tokens) == 1:
            self._generate_one(int(tokens[0]), written[0], on_token)
            return written
        for step in range(count):
            tokens = self.prefill(np.asarray(tokens).reshape(-1, 1))
            written[:, step] = tokens
            on_token()
        return written

    def _generate_one(self, token: int, written: Array, on_token: Callable[[], object]) -> None:
        """The same for one sequence, with nothing in the loop that does not change."""
        batch, decode, context = self._batch, self._c.llama_decode, self._context
        batch.count, batch.is_wanted[0], batch.sequences[0], batch.sequence[0][0] = 1, 1, 1, 0
        for step in range(len(written)):
            batch.token[0], batch.position[0] = token, self._held
            if decode(context, batch):
                raise self._describe_failure()
            token = int(self._logits(0).argmax())
            written[step] = token
            self._held += 1
            on_token()

    def verify(self, ids: Array) -> Array:
        self._fill(ids.reshape(1, -1), range(1), wants_all=True)
        self._decode()
        self._held += ids.size
        return np.array([self._logits(place).argmax() for place in range(ids.size)], np.int32)

    def rewind(self, length: int) -> None:
        if not self._c.llama_memory_seq_rm(self._memory, 0, length, -1):
            raise CapacityError(
                "llama.cpp cannot take back single tokens from this model's cache", hint="remove workload.draft",
                code="draft_unavailable",
            )  # fmt: skip
        self._held = length

    def logits(self, ids: Array) -> Array:
        """Read one sequence in pieces, and copy every row before the next piece takes its place."""
        self.reset()
        rows = np.empty((len(ids), self._size), np.float32)
        for begin in range(0, len(ids), _UBATCH):
            piece = np.asarray(ids[begin : begin + _UBATCH]).reshape(1, -1)
            self._fill(piece, range(1), wants_all=True)
            self._decode()
            self._held += piece.shape[1]
            for place in range(piece.shape[1]):
                rows[begin + place] = self._logits(place)
        return rows

    def kv_bytes(self) -> int:
        last = self._c.llama_memory_seq_pos_max  # of a sequence without tokens it is -1
        tokens = sum(int(last(self._memory, one)) + 1 for one in range(self._options.batch))
        return self._token_bytes * tokens

    def _read(self, ids: Array) -> list[int]:
        """Read ids of all sequences; return where in the last batch each one's logits are.

        Sequences are read one after the other where they are long, and all at once where each has one token.
        """
        rows, length = ids.shape
        if length == 1:
            self._fill(ids, range(rows))
            self._decode()
            self._held += 1
            return list(range(rows))
        kept = np.empty((rows, self._size), np.float32) if rows > 1 else None
        for row in range(rows):
            for begin in range(0, length, self._room):
                piece = ids[row : row + 1, begin : begin + self._room]
                self._fill(piece, range(row, row + 1), at=self._held + begin, is_last=begin + self._room >= length)
                self._decode()
            if kept is not None:
                kept[row] = self._logits(piece.shape[1] - 1)
        self._held += length
        self._kept = kept
        return list(range(-1, -1 - rows, -1)) if kept is not None else [piece.shape[1] - 1]

    def _fill(
        self, ids: Array, sequences: range, *, at: int | None = None, wants_all: bool = False, is_last: bool = True
    ) -> None:
        """Put ids into the batch: one row of many tokens, or one token of each sequence."""
        batch, flat = self._batch, np.ascontiguousarray(ids, np.int32).reshape(-1)
        count, begin = flat.size, self._held if at is None else at
        batch.count = count
        ctypes.memmove(batch.token, flat.ctypes.data, 4 * count)
        many = len(sequences) > 1
        for place in range(count):
            batch.position[place] = begin if many else begin + place
            batch.sequences[place] = 1
            batch.sequence[place][0] = sequences[place] if many else sequences[0]
            batch.is_wanted[place] = 1 if many or wants_all or (is_last and place == count - 1) else 0

    def _decode(self) -> None:
        if self._c.llama_decode(self._context, self._batch):
            raise self._describe_failure()

    def _describe_failure(self) -> SutError:
        return SutError(f"llama.cpp could not compute a batch: {self._why()}", code="engine_error")

    def _logits(self, place: int) -> Array:
        """Return the logits of one place, waiting for them; what a batch of long rows left is kept aside."""
        if place < 0 and self._kept is not None:
            row: Array = self._kept[-1 - place]
            return row
        found = self._c.llama_get_logits_ith(self._context, place)
        if not found:
            raise self._describe_failure()
        held: Any = self._row.from_address(found)
        return np.frombuffer(held, np.float32)


def _set_cache_type(asked: _Parameters, kv_type: str) -> None:
    """Ask for the cache's type, where this version keeps it in the place that is known."""
    if kv_type == "default":
        return
    if (*asked.words[_TYPES_AT : _TYPES_AT + 2], asked.words[_FLASH_AT]) != (1, 1, 2**32 - 1):
        raise CapacityError(
            "kv_type is not supported with this version of xllamacpp", hint="remove kv_type",
            code="kv_type_unavailable",
        )  # fmt: skip
    asked.words[_TYPES_AT] = asked.words[_TYPES_AT + 1] = _KV_TYPES[kv_type]
    asked.words[_FLASH_AT] = 1  # values are quantised only with it, and types are compared under the same attention


def _round_up(tokens: int) -> int:
    """Return so many tokens as a context of llama.cpp has: a multiple of 256."""
    return -(-tokens // 256) * 256


def _weights_type(described: str) -> str:
    """Return the type of the weights, of a description such as `llama 1B Q4_K - Medium`."""
    words = described.split(maxsplit=2)
    return words[-1].lower() if len(words) > 2 else described


class Llamacpp:
    """llama.cpp, with GGUF files."""

    name: ClassVar[str] = "llamacpp"
    formats: ClassVar[tuple[str, ...]] = (".gguf",)
    reference_formats: ClassVar[tuple[str, ...]] = ()
    requirements: ClassVar[tuple[str, ...]] = ("xllamacpp>=2026.1",)
    extra: ClassVar[str] = "llamacpp"
    computes_in_file_types: ClassVar[bool] = True
    speculates: ClassVar[bool] = True
    kv_types: ClassVar[tuple[str, ...]] = tuple(_KV_TYPES)

    def __init__(self) -> None:
        self._library: _Library | None = None

    def preload(self) -> str:
        from importlib.metadata import version

        found = importlib.util.find_spec("xllamacpp")
        if found is None or not found.submodule_search_locations:
            raise ModuleNotFoundError("No module named 'xllamacpp'", name="xllamacpp")
        folder = Path(next(iter(found.submodule_search_locations)))
        libraries = [*folder.glob("xllamacpp*.so"), *folder.glob("xllamacpp*.pyd")]
        if not libraries:
            raise ImportError(f"no library in {folder}")
        self._library = _Library(str(libraries[0]))
        return version("xllamacpp")

    def probe(self) -> EngineInfo:
        library = self._begin_library()
        library.context_parameters()
        units = [Unit("cpu", "llama.cpp on the CPU", ("default",))]
        if library.loaded.llama_supports_gpu_offload():
            units.append(Unit("gpu", "llama.cpp with all layers on the GPU of its build", ("default",)))
        return EngineInfo(self.preload(), units)

    def load(self, path: str, options: LoadOptions) -> Session:  # noqa: ARG002 - the port's signature
        raise refuse_as_model(self.name)

    def load_llm(self, path: str, options: LlmOptions) -> LlamaSession:
        library = self._begin_library()
        known = ("cpu", "gpu") if library.loaded.llama_supports_gpu_offload() else ("cpu",)
        if options.unit not in known:
            raise CapacityError(
                f"this build of llama.cpp has no unit {options.unit}", hint=f"available: {' and '.join(known)}",
                code="unit_unavailable",
            )  # fmt: skip
        if options.precision != "default":
            raise CapacityError(
                "llama.cpp computes in the types of the file", hint="use a GGUF file of another quantization",
                code="precision_unavailable",
            )  # fmt: skip
        if options.options:
            name = next(iter(options.options))
            hint = "it has no options; for speculative decoding, use workload.draft"
            raise InputError(f"llamacpp has no option {name!r}", hint=hint)
        return LlamaSession(library, path, options)

    def _begin_library(self) -> _Library:
        if self._library is None:
            self.preload()
        if self._library is None:
            raise CapacityError(
                "xllamacpp is not loaded", code="engine_broken", hint="prony engines add llamacpp installs it anew"
            )
        self._library.begin()
        return self._library
