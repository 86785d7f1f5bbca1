"""Engine for language models by OpenVINO, with the tokenizers and the reader of GGUF files of OpenVINO GenAI.

The model is stepped by its own infer request, as the library's plain pipeline does it, so that a stamp is the arrival
of one token and logits can be had.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from prony.errors import CapacityError, InputError, SutError
from prony.plugins.engines.openvino import (
    OpenVino,
    check_openvino_precision,
    compile_settings,
    describe_compiled,
    find_openvino_device,
    import_openvino,
)
from prony.ports.engine import Array, Effect, EngineInfo, LoadOptions, Session, is_memory_shortage
from prony.ports.llm import (
    CHAT_TEMPLATE,
    NO_TEMPLATE,
    EncodedPrompt,
    LlmFacts,
    LlmOptions,
    describe_load_failure,
    describe_template_failure,
    hash_words,
    join_messages,
    refuse_as_model,
)
from prony.ports.models import OPENVINO_FOLDER
from prony.runner.gguf_header import read_gguf_facts

_MODEL, _WEIGHTS, _TOKENIZER = "openvino_model.xml", "openvino_model.bin", "openvino_tokenizer.xml"
_INPUTS = ("input_ids", "attention_mask", "position_ids", "beam_idx")
_FACTS = "prony.json"
_LAST = 2**31 - 1
_BORDER = 8  # tokens that a text may have more for being cut in two


class OpenVinoLlm:
    """A model with its cache in the state of one infer request."""

    device_id: str | None = None

    def __init__(self, folder: Path, options: LlmOptions) -> None:
        openvino = import_openvino()
        self._openvino, self._folder, self._options = openvino, folder, options
        self._core = openvino.Core()
        self._device = find_openvino_device(self._core, options.unit)
        self._settings = compile_settings(self._core, self._device, options)
        self._model = self._read()
        names = {name for port in self._model.inputs for name in port.get_names()}
        if not {"input_ids", "beam_idx"} <= names <= set(_INPUTS):
            raise InputError(
                f"{_MODEL} in {folder.name} is not a stateful language model: its inputs are {', '.join(names)}",
                hint="export it as text-generation-with-past, which is stateful by default", code="damaged_model",
            )  # fmt: skip
        self._names = tuple(name for name in _INPUTS if name in names)
        self._parameters = count_parameters(self._model)
        self._compiled = self._compile(keep_last_position(openvino, self._model))
        check_openvino_precision(self._compiled, self._device, options.precision)
        self._request = self._compiled.create_infer_request()
        self._held = 0
        self._token_bytes = self._measure_token()

    def _read(self) -> Any:
        try:
            return self._core.read_model(str(self._folder / _MODEL))
        except RuntimeError as exc:
            raise describe_load_failure("OpenVINO", self._folder.name, _first_line(exc)) from exc

    def _compile(self, model: Any) -> Any:
        try:
            return self._core.compile_model(model, self._device, self._settings)
        except RuntimeError as exc:
            if is_memory_shortage(str(exc)):
                raise describe_load_failure("OpenVINO", self._folder.name, _first_line(exc)) from exc
            raise SutError(
                f"OpenVINO cannot compile {self._folder.name} for {self._device}: {_first_line(exc)}",
                hint="try --precision fp32: on some processors OpenVINO chooses a type that does not work",
                code="load_failed",
            ) from exc

    def _measure_token(self) -> int:
        """Return what one more token adds to the cache: elements of its states, in the type in which it is kept."""
        self._infer(self._request, np.zeros((1, 1), np.int64))
        elements = sum(prod(one.state.shape) for one in self._request.query_state())
        self.reset()
        known = self._compiled.get_property("SUPPORTED_PROPERTIES")
        bits = self._compiled.get_property("KV_CACHE_PRECISION").bitwidth if "KV_CACHE_PRECISION" in known else 32
        return int(elements * bits) // 8

    def effect(self) -> Effect:
        return describe_compiled(self._compiled)

    def facts(self) -> LlmFacts:
        about = _read_facts(self._folder)
        template = self._tokenizer.chat_template if self._has_tokenizer else ""
        return LlmFacts(
            architecture=str(about.get("model_type", "unknown")),
            vocabulary=int(self._compiled.output(0).get_partial_shape()[2].get_length()),
            context=int(about.get("max_position_embeddings", 0)), kv_token_bytes=self._token_bytes,
            weights_bytes=(self._folder / _WEIGHTS).stat().st_size, parameters=self._parameters,
            tokenizer_sha256=hash_words(self._words()) if self._has_tokenizer else "",
            template_sha256=hash_words([template]) if template else "",
        )  # fmt: skip

    @property
    def _has_tokenizer(self) -> bool:
        return (self._folder / _TOKENIZER).is_file()

    @cached_property
    def _tokenizer(self) -> Any:
        if not self._has_tokenizer:
            raise InputError(
                "the model's folder has no tokenizer", hint=f"put {_TOKENIZER} next to {_MODEL}", code="no_tokenizer"
            )
        import openvino_genai

        try:
            return openvino_genai.Tokenizer(str(self._folder))
        except RuntimeError as exc:
            raise describe_load_failure("OpenVINO", self._folder.name, _first_line(exc)) from exc

    def _words(self) -> list[bytes]:
        known = self._tokenizer.get_vocab()
        return [bytes(word) for word in sorted(known, key=known.__getitem__)]

    def tokenize(self, text: str) -> list[int]:
        return self._encode(text, with_marks=False)

    def _encode(self, text: str, *, with_marks: bool) -> list[int]:
        found, half = self._encode_piece(text, with_marks=with_marks), len(text) // 2
        # The tokenizer cuts long texts without a word: then its halves have more tokens than the whole.
        halves = [self._encode_piece(one, with_marks=False) for one in (text[:half], text[half:])]
        if sum(map(len, halves)) > len(found) + _BORDER:
            raise InputError(
                f"the tokenizer of this model cuts texts at {len(found)} tokens", hint="lower prompts.longest",
                code="context_exceeded",
            )  # fmt: skip
        return found

    def _encode_piece(self, text: str, *, with_marks: bool) -> list[int]:
        found = self._tokenizer.encode(text, add_special_tokens=with_marks).input_ids.data
        return [int(one) for one in found.reshape(-1)]

    def encode_prompt(self, messages: Sequence[Mapping[str, str]]) -> EncodedPrompt:
        if not self._tokenizer.chat_template:
            return EncodedPrompt(self._encode(join_messages(messages), with_marks=True), NO_TEMPLATE)
        try:
            text = self._tokenizer.apply_chat_template([dict(one) for one in messages], add_generation_prompt=True)
        except RuntimeError as exc:
            raise describe_template_failure(_first_line(exc)) from exc
        return EncodedPrompt(self._encode(text, with_marks=False), CHAT_TEMPLATE)

    def detokenize(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode([int(one) for one in ids], skip_special_tokens=True)) if len(ids) else ""

    def end_ids(self) -> frozenset[int]:
        told = _read_json(self._folder / "generation_config.json").get("eos_token_id", [])
        ends = told if isinstance(told, list) else [told]
        return frozenset(int(one) for one in (*ends, self._tokenizer.get_eos_token_id()))

    def reset(self) -> None:
        self._request.reset_state()
        self._held = 0

    def prefill(self, ids: Array) -> Array:
        return np.asarray(self._infer(self._request, ids)[:, -1].argmax(axis=-1), np.int32)

    def generate(self, tokens: Array, count: int, on_token: Callable[[], object]) -> Array:
        written = np.empty((len(tokens), count), np.int32)
        for step in range(count):
            tokens = self._infer(self._request, np.asarray(tokens).reshape(-1, 1))[:, -1].argmax(axis=-1)
            written[:, step] = tokens
            on_token()
        return written

    def _infer(self, request: Any, ids: Array) -> Array:
        """Read ids behind what the state holds; the logits are the request's own, until it is asked again."""
        rows, length = ids.shape
        total = self._held + length
        given = {
            "input_ids": ids.astype(np.int64, order="C"), "attention_mask": np.ones((rows, total), np.int64),
            "position_ids": np.tile(np.arange(self._held, total, dtype=np.int64), (rows, 1)),
            "beam_idx": np.arange(rows, dtype=np.int32),
        }  # fmt: skip
        try:
            for name in self._names:
                request.set_tensor(name, self._openvino.Tensor(given[name], shared_memory=True))
            request.start_async()
            request.wait()
        except RuntimeError as exc:
            raise SutError(f"OpenVINO failed: {_first_line(exc)}", code="engine_error") from exc
        self._held = total
        found: Array = request.get_output_tensor(0).data
        return found

    def logits(self, ids: Array) -> Array:
        """Read one sequence with a second compilation of the model, which keeps every position."""
        self.reset()
        every = self._compile(self._read()).create_infer_request()
        found = np.array(self._infer(every, np.asarray(ids).reshape(1, -1))[0], np.float32)
        self._held = 0
        return found

    def kv_bytes(self) -> int:
        if self._held:
            return self._token_bytes * self._held * self._options.batch
        return sum(int(one.state.byte_size) for one in self._request.query_state())  # copied, so only where it is empty


class OpenVinoGenai:
    """Language models in OpenVINO's format, and GGUF files of the architectures that OpenVINO GenAI reads."""

    name: ClassVar[str] = "openvino-genai"
    formats: ClassVar[tuple[str, ...]] = (OPENVINO_FOLDER, ".gguf")
    reference_formats: ClassVar[tuple[str, ...]] = ()
    requirements: ClassVar[tuple[str, ...]] = ("openvino-genai>=2025.2",)
    extra: ClassVar[str] = "openvino-genai"

    def preload(self) -> str:
        import_openvino()
        import openvino_genai

        return str(openvino_genai.__version__)

    def probe(self) -> EngineInfo:
        found = OpenVino().probe()
        units = [
            replace(one, precisions=tuple(word for word in one.precisions if word != "int8")) for one in found.units
        ]
        return EngineInfo(self.preload(), units, {**found.details, "openvino": found.version})

    def load(self, path: str, options: LoadOptions) -> Session:  # noqa: ARG002 - the port's signature
        raise refuse_as_model(self.name)

    def load_llm(self, path: str, options: LlmOptions) -> OpenVinoLlm:
        if options.precision == "int8":
            raise CapacityError(
                "OpenVINO computes in the types of the file, or in fp32, fp16 or bf16",
                hint="use a model with weights compressed to int8", code="precision_unavailable",
            )  # fmt: skip
        given = Path(path)
        folder = self._convert(given, options) if given.is_file() else given
        if not (folder / _MODEL).is_file():
            raise InputError(
                f"{folder.name} has no {_MODEL}", hint="optimum-cli export openvino --model FOLDER OUT creates one",
                code="damaged_model",
            )  # fmt: skip
        return OpenVinoLlm(folder, options)

    def _convert(self, path: Path, options: LlmOptions) -> Path:
        """Return the model of a GGUF file in OpenVINO's format, made once for each file and version."""
        about = read_gguf_facts(path)
        import openvino_genai

        found = path.stat()
        key = f"{path.resolve()} {found.st_size} {found.st_mtime_ns} {openvino_genai.__version__}"
        base = Path(options.cache or tempfile.mkdtemp(prefix="prony-openvino-"))
        base.mkdir(parents=True, exist_ok=True)
        made = base / f"{path.stem}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
        if made.is_dir():
            return made
        part = Path(tempfile.mkdtemp(prefix=f"{made.name}-", dir=base))
        try:
            (part / "model.gguf").symlink_to(path.resolve())
            # The library writes what it made of the file beside it; that is the only way to get it.
            # It compiles it too, to no use: in a type that every processor computes in.
            openvino_genai.LLMPipeline(
                str(part / "model.gguf"), "CPU", enable_save_ov_model=True, INFERENCE_PRECISION_HINT="f32"
            )
            (part / "model.gguf").unlink()
            (part / _FACTS).write_text(json.dumps(about))
            if not made.is_dir():
                part.rename(made)
        except RuntimeError as exc:
            raise describe_load_failure("OpenVINO", path.name, _first_line(exc)) from exc
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return made


def keep_last_position(openvino: Any, model: Any) -> Any:
    """Return the model with logits for the last position alone, as the library's own pipeline has it."""
    product = model.get_results()[0].input(0).get_source_output().get_node()
    while product.get_type_name() != "MatMul":
        if product.get_type_name() not in ("Convert", "Add", "Multiply", "Divide", "Tanh", "Transpose", "Reshape"):
            return model  # its end is of no usual form, and every position it is
        product = product.input(0).get_source_output().get_node()
    source = product.input(0).get_source_output()
    begin, end, step, axis = (np.array([one], np.int64) for one in (-1, _LAST, 1, 1))
    last = openvino.opset13.slice(source, begin, end, step, axis)
    product.input(0).replace_source_output(last.output(0))
    model.validate_nodes_and_infer_types()
    return model


def count_parameters(model: Any) -> int:
    """Return how many weights the matrix products and the embedding of a model have."""
    counted: dict[str, int] = {}
    for node in model.get_ops():
        place = {"MatMul": 1, "Gather": 0}.get(node.get_type_name())
        if place is None:
            continue
        shape = node.input(place).get_partial_shape()
        if shape.is_static and len(shape) == 2:
            counted[_name_constant(node.input(place))] = prod(int(one.get_length()) for one in shape)
    return sum(counted.values())


def _name_constant(port: Any) -> str:
    """Return the name of the constant behind a port, so that an embedding that is used twice counts once."""
    node = port.get_source_output().get_node()
    while node.get_type_name() != "Constant" and node.get_input_size():
        node = node.input(0).get_source_output().get_node()
    return str(node.get_friendly_name())


def _read_facts(folder: Path) -> dict[str, Any]:
    return _read_json(folder / "config.json") or _read_json(folder / _FACTS)


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    found = json.loads(path.read_text())
    return found if isinstance(found, dict) else {}


def _first_line(exc: Exception) -> str:
    """Return what happened: the library's messages begin with places in its own code."""
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("Exception from", "Check '"))]
    return (told or lines or [type(exc).__name__])[0][:300].rstrip(".")
