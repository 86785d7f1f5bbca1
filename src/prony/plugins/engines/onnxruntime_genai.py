"""Engine for language models in the folders of onnxruntime-genai: an ONNX graph with `genai_config.json` beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from prony.errors import CapacityError, InputError, SutError
from prony.plugins.engines.onnxruntime import turn_off_telemetry
from prony.ports.engine import Array, Effect, EngineInfo, GpuBuild, LoadOptions, Session, Unit, gpu_build_command
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
from prony.ports.models import GENAI_FOLDER
from prony.ports.unit_names import unit_aliases

_SETTINGS = "genai_config.json"
_TYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
_PLACE = re.compile(r" at row \d+, column \d+:?$")  # behind why a template failed


class OnnxGenaiLlm:
    """A model, and a generator that is made anew whenever the cache is emptied."""

    device_id: str | None = None

    def __init__(self, folder: Path, settings: Mapping[str, Any], options: LlmOptions) -> None:
        import onnxruntime_genai

        self._genai, self._folder, self._settings, self._options = onnxruntime_genai, folder, settings, options
        try:
            config = onnxruntime_genai.Config(str(folder))
            config.clear_providers()
            if options.unit != "cpu":
                config.append_provider(options.unit)
            session = {"intra_op_num_threads": options.threads, **options.options}
            config.overlay(json.dumps({"model": {"decoder": {"session_options": session}}}))
            self._model = onnxruntime_genai.Model(config)
        except RuntimeError as exc:
            raise describe_load_failure("onnxruntime-genai", folder.name, str(exc)) from exc
        self._is_writing = False
        self._held = 0
        self.reset()
        self._measure_token()

    def _measure_token(self) -> None:
        """Look at what the first token leaves in the cache of the first layer."""
        self.prefill(np.zeros((self._options.batch, 1), np.int32))
        name = self._decoder["outputs"]["present_key_names"].replace("%d", "0")
        first = self._generator.get_output(name)
        self._kv_type = str(first.dtype)
        heads, size = first.shape[1], first.shape[3]
        self._token_bytes = int(2 * self._decoder["num_hidden_layers"] * heads * size * first.dtype.itemsize)
        self.reset()

    @property
    def _decoder(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._settings["model"]["decoder"]
        return found

    def effect(self) -> Effect:
        details = {"cache": self._kv_type, "weights": "of the file's types", "provider": self._options.unit}
        return Effect(str(self._model.device_type).lower(), _TYPES.get(self._kv_type, self._kv_type),
                      self._options.threads, details=details)  # fmt: skip

    def facts(self) -> LlmFacts:
        model, words, template = self._settings["model"], self._words(), self._template()
        graph = self._folder / self._decoder["filename"]
        beside = [one for one in self._folder.glob(f"{graph.name}*") if one != graph]
        return LlmFacts(
            architecture=str(self._model.type), vocabulary=int(model["vocab_size"]),
            context=int(model.get("context_length", 0)), kv_token_bytes=self._token_bytes,
            weights_bytes=sum(one.stat().st_size for one in (graph, *beside)),
            tokenizer_sha256=hash_words(words) if words else "",
            template_sha256=hash_words([template]) if template else "",
        )  # fmt: skip

    def _words(self) -> list[str]:
        found = _read_json(self._folder / "tokenizer.json")
        known = dict(found.get("model", {}).get("vocab", {})) if found else {}
        known |= {one["content"]: one["id"] for one in found.get("added_tokens", ())}
        return sorted(known, key=known.__getitem__)

    def _template(self) -> str:
        beside = self._folder / "chat_template.jinja"
        if beside.is_file():
            return beside.read_text()
        return str(_read_json(self._folder / "tokenizer_config.json").get("chat_template") or "")

    @cached_property
    def _tokenizer(self) -> Any:
        if not (self._folder / "tokenizer.json").is_file():
            raise InputError(
                "the model's folder has no tokenizer", hint=f"put tokenizer.json next to {_SETTINGS}",
                code="no_tokenizer",
            )  # fmt: skip
        try:
            return self._genai.Tokenizer(self._model)
        except RuntimeError as exc:
            raise InputError(
                f"onnxruntime-genai cannot read the tokenizer: {exc}",
                hint="check the tokenizer files in the folder of the model",
                code="no_tokenizer",
            ) from exc

    def tokenize(self, text: str) -> list[int]:
        return [int(one) for one in self._tokenizer.encode(text)]

    def encode_prompt(self, messages: Sequence[Mapping[str, str]]) -> EncodedPrompt:
        if not self._template():
            return EncodedPrompt(self.tokenize(join_messages(messages)), NO_TEMPLATE)
        try:
            given = json.dumps([dict(one) for one in messages])
            text = self._tokenizer.apply_chat_template(given, add_generation_prompt=True)
        except RuntimeError as exc:
            raise describe_template_failure(_PLACE.sub("", str(exc).partition("\n")[0])) from exc
        return EncodedPrompt(self.tokenize(text), CHAT_TEMPLATE)

    def detokenize(self, ids: Sequence[int]) -> str:
        ends = self.end_ids()
        return str(self._tokenizer.decode(np.array([one for one in ids if one not in ends], np.int32)))

    def end_ids(self) -> frozenset[int]:
        told = self._settings["model"].get("eos_token_id", [])
        return frozenset(int(one) for one in (told if isinstance(told, list) else [told]))

    def reset(self) -> None:
        made = self._genai.GeneratorParams(self._model)
        most = self._options.context
        # So long a least length keeps the end mark from being written, and so from ending what is timed.
        made.set_search_options(do_sample=False, batch_size=self._options.batch, max_length=most, min_length=most)
        self._generator = self._genai.Generator(self._model, made)
        self._is_writing, self._held = False, 0

    def prefill(self, ids: Array) -> Array:
        self._append(ids)
        return np.asarray(self._generator.get_logits()[:, -1].argmax(axis=-1), np.int32)

    def _append(self, ids: Array) -> None:
        if self._is_writing or (self._held and len(ids) > 1):
            raise CapacityError(
                "onnxruntime-genai supports several sequences only with an empty cache",
                hint="use depth: 0 or batch: 1", code="engine_limit",
            )  # fmt: skip
        try:
            self._generator.append_tokens(np.ascontiguousarray(ids, np.int32))
        except RuntimeError as exc:
            raise SutError(f"onnxruntime-genai failed: {exc}", code="engine_error") from exc
        self._held += ids.shape[1]

    def generate(self, tokens: Array, count: int, on_token: Callable[[], object]) -> Array:
        """Let the library choose: its first choice is what reading the prompt gave, and each later one is a step."""
        step, chosen = self._generator.generate_next_token, self._generator.get_next_tokens
        written = np.empty((len(tokens), count), np.int32)
        self._is_writing = True
        try:
            step()
            for place in range(count):
                step()
                written[:, place] = chosen()
                on_token()
        except RuntimeError as exc:
            raise SutError(f"onnxruntime-genai failed: {exc}", code="engine_error") from exc
        self._held += count
        return written

    def logits(self, ids: Array) -> Array:
        self.reset()
        self._append(np.asarray(ids).reshape(1, -1))
        found: Array = np.array(self._generator.get_output("logits")[0], np.float32)
        if len(found) != len(ids):  # the graph keeps the last position alone
            self.reset()
            rows = []
            for one in np.asarray(ids).reshape(-1, 1, 1):
                self._append(one)
                rows.append(np.array(self._generator.get_logits()[0, -1], np.float32))
            found = np.vstack(rows)
        self.reset()
        return found

    def kv_bytes(self) -> int:
        tokens = self._held or int(self._generator.token_count())  # its own count has the last choice too, not yet read
        return self._token_bytes * tokens * self._options.batch


class OnnxRuntimeGenai:
    """Language models by ONNX Runtime, in the folders that its model builder writes."""

    name: ClassVar[str] = "onnxruntime-genai"
    formats: ClassVar[tuple[str, ...]] = (GENAI_FOLDER,)
    reference_formats: ClassVar[tuple[str, ...]] = ()
    requirements: ClassVar[tuple[str, ...]] = ("onnxruntime-genai>=0.8",)
    extra: ClassVar[str] = "onnxruntime-genai"
    gpu_builds: ClassVar[tuple[GpuBuild, ...]] = (
        GpuBuild(
            "onnxruntime-genai-cuda",
            ("cuda",),
            ("onnxruntime-genai-cuda", "onnxruntime-gpu[cuda,cudnn]"),
            cuda="13.0",
        ),
        GpuBuild("onnxruntime-genai-directml", ("dml",), ("onnxruntime-genai-directml",), systems=("win32",)),
    )
    computes_in_file_types: ClassVar[bool] = True

    def preload(self) -> str:
        turn_off_telemetry()
        import onnxruntime_genai

        return str(onnxruntime_genai.__version__)

    def probe(self) -> EngineInfo:
        units = [Unit("cpu", "ONNX Runtime on the CPU", ("default",))]
        units += [Unit(name, f"ONNX Runtime by {name}", ("default",)) for name in self._cards()]
        return EngineInfo(self.preload(), units)

    def _cards(self) -> list[str]:
        import onnxruntime_genai

        return [name for name in ("cuda", "dml") if getattr(onnxruntime_genai, f"is_{name}_available")()]

    def load(self, path: str, options: LoadOptions) -> Session:  # noqa: ARG002 - the port's signature
        raise refuse_as_model(self.name)

    def load_llm(self, path: str, options: LlmOptions) -> OnnxGenaiLlm:
        known = ("cpu", *self._cards())
        names = (options.unit,) if ":" in options.unit else unit_aliases(options.unit)
        unit = next((one for one in names if one in known), None)
        if unit is None:
            added = gpu_build_command(self, options.unit)
            hint = f"available: {' and '.join(known)}" + (f"; or {added}" if added else "")
            raise CapacityError(
                f"this build of onnxruntime-genai has no unit {options.unit}", hint=hint, code="unit_unavailable"
            )
        if options.precision != "default":
            raise CapacityError(
                "onnxruntime-genai computes in the types of the file", hint="use a model built in another type",
                code="precision_unavailable",
            )  # fmt: skip
        settings = _read_json(Path(path) / _SETTINGS)
        if not isinstance(settings.get("model", {}).get("decoder"), dict):
            raise InputError(
                f"{Path(path).name} has no {_SETTINGS} with a decoder",
                hint="python -m onnxruntime_genai.models.builder -m FOLDER -o OUT -p fp32 -e cpu creates one",
                code="damaged_model",
            )  # fmt: skip
        return OnnxGenaiLlm(Path(path), settings, replace(options, unit=unit))


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text())
    except ValueError as exc:
        raise InputError(
            f"{path.name} is not JSON: {exc}", hint="check that the file is complete", code="damaged_model"
        ) from exc
    return found if isinstance(found, dict) else {}
