"""Engine for language models in Hugging Face's layout, by transformers and PyTorch."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from prony.errors import CapacityError, InputError, PronyError
from prony.plugins.engines.folder_tokenizer import FolderTexts, FolderTokenizer
from prony.plugins.engines.torch import Torch
from prony.plugins.engines.transformers_cache import MODES, FixedCache, GraphedStep, GrowingCache, KeyValueCache
from prony.ports.engine import (
    Array,
    CpuIndex,
    DeviceMemory,
    Effect,
    EngineInfo,
    GpuBuild,
    LoadOptions,
    Session,
)  # fmt: skip
from prony.ports.llm import (
    SEEDED,
    LlmFacts,
    LlmOptions,
    describe_load_failure,
    refuse_as_model,
    seeded_values,
)
from prony.ports.models import FOLDER

_CASTS = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_NAMES = {cast: name for name, cast in _CASTS.items()}
# Above, seeded weights are made on the device by PyTorch, in seconds, and are other ones than elsewhere.
_SEEDED_ALIKE = 300_000_000
_STD = 0.02
_OPTIONS = ("attention", "mode", "round_weights")


class TransformersSession(FolderTexts):
    """A causal language model on its device, with its cache."""

    def __init__(
        self, model: Any, tokenizer: FolderTokenizer, device: tuple[str, str | None], options: LlmOptions
    ) -> None:
        import torch

        self._torch, self._model, self._tokenizer = torch, model, tokenizer
        self._device, self.device_id = device
        self._batch, self._options = options.batch, options.options
        self._weights = sum(one.numel() * one.element_size() for one in model.parameters())
        self._mode = str(options.options.get("mode", MODES[0]))
        self._graphed: GraphedStep | None = None
        self._cache: KeyValueCache = GrowingCache(model.config)
        self.prefill(np.zeros((1, 1), np.int32))
        self._token_bytes = self.kv_bytes()
        if self._mode == MODES[0]:
            self.reset()
        else:
            self._cache = FixedCache(model.config, options.context)
            self._prepare(options.batch)

    def effect(self) -> Effect:
        torch, kind = self._torch, str(self._model.dtype).removeprefix("torch.")
        is_cuda = self._device.startswith("cuda")
        device = str(torch.cuda.get_device_name(self._device)) if is_cuda else self._device
        details = {
            "torch": str(torch.__version__), "attention": str(self._model.config._attn_implementation),
            "cache": self._cache.kind,
            "tf32": str(torch.backends.cuda.matmul.allow_tf32) if is_cuda else "no",
        }  # fmt: skip
        if self._mode != MODES[0]:
            details["mode"] = self._mode
        if "round_weights" in self._options:
            details["weights"] = f"rounded to {self._options['round_weights']} bits per row, computed in {kind}"
        return Effect(device, _NAMES.get(kind, kind), torch.get_num_threads(), details=details)

    def facts(self) -> LlmFacts:
        config = self._model.config.get_text_config()
        return LlmFacts(
            architecture=str(config.model_type), vocabulary=int(config.vocab_size),
            context=int(getattr(config, "max_position_embeddings", 0) or 0), weights_bytes=self._weights,
            kv_token_bytes=self._token_bytes, parameters=sum(one.numel() for one in self._model.parameters()),
            tokenizer_sha256=self._tokenizer.words_sha256, template_sha256=self._tokenizer.template_sha256,
        )  # fmt: skip

    def end_ids(self) -> frozenset[int]:
        return self._join_ends(self._model.generation_config.eos_token_id)

    def reset(self) -> None:
        with self._torch.inference_mode():
            self._cache.clear()

    def prefill(self, ids: Array) -> Array:
        fed = self._torch.from_numpy(ids.astype(np.int64))
        self._prepare(len(ids))
        if self._graphed is not None and fed.shape[1] == 1:
            return np.array(self._graphed.write(fed, 1, lambda: None)[0], np.int32)
        with self._torch.inference_mode():
            chosen = self._read(fed, logits_to_keep=1)[:, -1].argmax(-1)
        return np.array(chosen.tolist(), np.int32)

    def generate(self, tokens: Array, count: int, on_token: Callable[[], object]) -> Array:
        self._prepare(len(tokens))
        last = self._torch.from_numpy(np.asarray(tokens).astype(np.int64)).to(self._device)
        if self._graphed is not None:
            return np.array(self._graphed.write(last, count, on_token), np.int32).T
        return np.array(self._write(last, count, on_token), np.int32).T

    def _write(self, last: Any, count: int, on_token: Callable[[], object]) -> list[list[int]]:
        rows = []
        with self._torch.inference_mode():
            for _ in range(count):
                last = self._read(last.view(-1, 1), logits_to_keep=1)[:, -1].argmax(-1)
                rows.append(last.tolist())  # waits for the device, and for nothing else
                on_token()
        return rows

    def _prepare(self, rows: int) -> None:
        """Record the step anew where it was recorded for another number of rows; that forgets what was read."""
        is_recorded = self._graphed is not None and self._graphed.rows == rows
        if self._mode == "graph" and isinstance(self._cache, FixedCache) and not is_recorded:
            self._graphed = GraphedStep(self._torch, self._model, self._cache, rows, self._device)

    def _read(self, ids: Any, **options: int) -> Any:
        cache = self._cache.take(*ids.shape)
        return self._model(ids.to(self._device), past_key_values=cache, use_cache=True, **options).logits

    def verify(self, ids: Array) -> Array:
        with self._torch.inference_mode():
            fed = self._torch.from_numpy(ids.astype(np.int64)).view(1, -1)
            return np.array(self._read(fed)[0].argmax(-1).tolist(), np.int32)

    def rewind(self, length: int) -> None:
        with self._torch.inference_mode():
            self._cache.crop(length)

    def logits(self, ids: Array) -> Array:
        self.reset()
        # A cache of its own: all answers are read, and none is kept.
        cache = GrowingCache(self._model.config).take(1, len(ids))
        with self._torch.inference_mode():
            fed = self._torch.from_numpy(np.asarray(ids).astype(np.int64)).view(1, -1).to(self._device)
            out = self._model(fed, past_key_values=cache, use_cache=True).logits[0]
            found: Array = out.float().cpu().numpy()
        return found

    def kv_bytes(self) -> int:
        return self._cache.count_bytes()

    def reset_memory_peak(self) -> None:
        if self._device.startswith("cuda"):
            self._torch.cuda.reset_peak_memory_stats(self._device)

    def device_memory(self) -> DeviceMemory | None:
        if not self._device.startswith("cuda"):
            return None
        cuda = self._torch.cuda
        return DeviceMemory(
            self._weights, int(cuda.max_memory_allocated(self._device)), int(cuda.max_memory_reserved(self._device))
        )


class Transformers:
    """Language models of the Hugging Face library, on the CPU and every device that PyTorch sees."""

    name: ClassVar[str] = "transformers"
    formats: ClassVar[tuple[str, ...]] = (FOLDER, ".gguf")
    reference_formats: ClassVar[tuple[str, ...]] = ()
    requirements: ClassVar[tuple[str, ...]] = (
        "torch",
        "transformers>=5",
        "tokenizers",
        "safetensors",
        "gguf",
        "accelerate",
    )
    extra: ClassVar[str] = "transformers"
    speculates: ClassVar[bool] = True
    gpu_builds: ClassVar[tuple[GpuBuild, ...]] = (
        GpuBuild("transformers-cuda", ("cuda",), requirements, machines=("x86_64", "aarch64"), cuda="13.0"),
    )
    cpu_index: ClassVar[CpuIndex] = Torch.cpu_index

    def preload(self) -> str:
        Torch().preload()
        import transformers
        from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, DynamicCache  # noqa: F401
        from transformers.models.llama import modeling_llama  # noqa: F401 - most models are of its kind

        return str(transformers.__version__)

    def probe(self) -> EngineInfo:
        found = Torch().probe()
        return EngineInfo(self.preload(), found.units, {**found.details, "torch": found.version})

    def load(self, path: str, options: LoadOptions) -> Session:  # noqa: ARG002 - the port's signature
        raise refuse_as_model(self.name)

    def load_llm(self, path: str, options: LlmOptions) -> TransformersSession:
        import torch

        device = Torch().find_device(options.unit)
        _check_options(options)
        torch.set_num_threads(options.threads)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        try:
            model = _load_model(Path(path), device[0], options).eval()
            tokenizer = FolderTokenizer.load(Path(path))
        except PronyError:
            raise
        # PyTorch raises RuntimeError where memory runs out, and where weights have other shapes than the model.
        except (OSError, ValueError, KeyError, ImportError, RuntimeError) as exc:
            raise describe_load_failure(self.name, Path(path).name, str(exc) or type(exc).__name__) from exc
        if bits := options.options.get("round_weights"):
            _round_weights(torch, model, int(bits))
        return TransformersSession(model, tokenizer, device, options)


def _check_options(options: LlmOptions) -> None:
    if options.precision not in ("default", *_CASTS):
        raise CapacityError(
            f"transformers cannot compute in {options.precision}",
            hint=f"use {', '.join(_CASTS)}; options.round_weights: 8 shows what rounded weights do to the answers",
            code="precision_unavailable",
        )
    wrong = [name for name in options.options if name not in _OPTIONS]
    if wrong:
        raise InputError(f"transformers has no option {wrong[0]!r}", hint=f"it takes {', '.join(_OPTIONS)}")
    mode = options.options.get("mode", MODES[0])
    if mode not in MODES:
        raise InputError(f"option mode has the unknown value {mode!r}", hint=f"use one of {', '.join(MODES)}")
    if mode == "graph" and not options.unit.startswith("cuda"):
        raise InputError("mode: graph needs a CUDA device", hint="use mode: static, or unit: cuda")


def _load_model(path: Path, device: str, options: LlmOptions) -> Any:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    cast = getattr(torch, _CASTS[options.precision]) if options.precision in _CASTS else "auto"
    given = {"attn_implementation": options.options.get("attention", "sdpa"), "dtype": cast}
    if path.is_file():
        load = partial(AutoModelForCausalLM.from_pretrained, str(path.parent), gguf_file=path.name)
        return load(**given).to(device)
    if not (path / SEEDED).is_file():
        return AutoModelForCausalLM.from_pretrained(str(path), local_files_only=True, **given).to(device)
    config = AutoConfig.from_pretrained(str(path))
    if cast == "auto":
        given["dtype"] = config.dtype or torch.float32
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, **given)
    _fill_seeded(torch, model, json.loads((path / SEEDED).read_text())["seed"])
    return model


def _fill_seeded(torch: Any, model: Any, seed: int) -> None:
    """Give the model its seeded weights: small ones alike on every engine, large ones by the device itself."""
    is_small = sum(one.numel() for one in model.parameters()) <= _SEEDED_ALIKE
    made = None if is_small else torch.Generator(device=next(model.parameters()).device).manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if is_small or "norm" in name:
                weight.copy_(torch.from_numpy(seeded_values(name, weight.shape, seed)))
            else:
                # In float32 whatever the model computes in: another type would draw other numbers.
                drawn = torch.empty(weight.shape, dtype=torch.float32, device=weight.device)
                weight.copy_(drawn.normal_(0.0, _STD, generator=made))


def _round_weights(torch: Any, model: Any, bits: int) -> None:
    """Round every matrix of a layer to so many bits a row, and leave it in its type."""
    if not 2 <= bits <= 8:
        raise InputError(f"round_weights is {bits}", hint="use 2 to 8 bits")
    most = 2 ** (bits - 1) - 1
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 2 and "embed" not in name and "lm_head" not in name:
                step = weight.abs().amax(dim=1, keepdim=True).float().clamp_min(1e-12) / most
                weight.copy_((weight.float() / step).round() * step)
