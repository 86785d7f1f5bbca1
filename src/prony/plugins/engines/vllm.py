"""Engine for language models in Hugging Face's layout, by vLLM's own engine in this process, stepped token by token.

A prompt is one request for each sequence, which goes on until the cache is emptied. The engine's core runs in this
process and not in one of its own, so that a stamp is the arrival of a token and memory is counted.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count as count_from
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from prony.errors import CapacityError, InputError, PronyError, SutError
from prony.plugins.engines.folder_tokenizer import FolderTexts, FolderTokenizer
from prony.plugins.engines.torch import Torch
from prony.plugins.engines.torch_options import read_switch
from prony.ports.engine import Array, DeviceMemory, Effect, EngineInfo, GpuBuild, LoadOptions, Session
from prony.ports.llm import (
    SEEDED,
    LlmFacts,
    LlmOptions,
    cache_not_empty,
    describe_load_failure,
    refuse_as_model,
    seeded_values,
)
from prony.ports.models import FOLDER

_CASTS = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_NAMES = {cast: name for name, cast in _CASTS.items()}
_OPTIONS = ("attention", "eager")
_SEEDED_LOADER = "prony-seeded"
# Above, making seeded weights one by one takes minutes: vLLM's own dummy weights take their place.
_SEEDED_ALIKE = 300_000_000
_MARGIN = 8  # tokens behind the last that is asked for: vLLM may have begun with the next ones
# All prompts are read in one step; else the first sequences would write while the last are still read.
_MOST_STEP_TOKENS = 65_536
_SPARE_BLOCKS = 2  # vLLM keeps one block of the cache for itself
# As many values of the logits as are asked for at once: each is a Python number.
_MOST_LOGITS = 50_000_000
_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "VLLM_HOST_IP": "127.0.0.1",
    "HF_HUB_OFFLINE": "1",
}  # fmt: skip
_CPU_HINT = (
    "install vLLM's own wheel for CPUs, from the releases of vllm-project/vllm: PIP_EXTRA_INDEX_URL="
    "https://download.pytorch.org/whl/cpu prony engines add vllm --package URL-OF-THE-WHEEL"
)


class VllmSession(FolderTexts):
    """One request for each sequence. What a step gives ahead of being asked for waits in `_unread`."""

    def __init__(
        self,
        engine: Any,
        tokenizer: FolderTokenizer,
        device: tuple[str, str | None],
        count_weights: Callable[[Any], tuple[int, int | None]],
    ) -> None:
        self._engine, self._tokenizer, self._device, self.device_id = engine, tokenizer, *device
        self._config = engine.vllm_config
        self._weights, self._parameters = engine.apply_model(count_weights)[0]
        self._token_bytes = _token_bytes(self._config)
        self._numbers = count_from()
        self._unread: dict[str, deque[int]] = {}
        self._last: list[int] = []
        self._held = 0

    def effect(self) -> Effect:
        import torch

        model, kind = self._config.model_config, str(self._config.model_config.dtype).removeprefix("torch.")
        is_cuda = self._device.startswith("cuda")
        device = str(torch.cuda.get_device_name(self._device)) if is_cuda else self._device
        details = {
            "torch": str(torch.__version__), "eager": str(bool(model.enforce_eager)).lower(),
            "cache": f"blocks of {self._config.cache_config.block_size} tokens, no prefix cache",
            "scheduling": "one step ahead" if self._config.scheduler_config.async_scheduling else "step by step",
        }  # fmt: skip
        return Effect(device, _NAMES.get(kind, kind), torch.get_num_threads(), details=details)

    def facts(self) -> LlmFacts:
        config = self._config.model_config.hf_text_config
        return LlmFacts(
            architecture=str(config.model_type), vocabulary=int(config.vocab_size), context=_own_context(config),
            weights_bytes=self._weights, kv_token_bytes=self._token_bytes, parameters=self._parameters,
            tokenizer_sha256=self._tokenizer.words_sha256, template_sha256=self._tokenizer.template_sha256,
        )  # fmt: skip

    def end_ids(self) -> frozenset[int]:
        return self._join_ends(getattr(self._config.model_config.hf_text_config, "eos_token_id", None))

    def reset(self) -> None:
        self._engine.abort_request(list(self._unread))
        while self._engine.has_unfinished_requests():
            self._engine.step()
        self._unread, self._last, self._held = {}, [], 0

    def prefill(self, ids: Array) -> Array:
        if not self._unread:
            self._begin(ids)
        elif ids.shape[1] != 1 or ids[:, 0].tolist() != self._last:
            raise CapacityError(
                "vLLM cannot read a prompt after tokens that are in its cache", code="engine_limit",
                hint="measure the prompt with depth 0; tokens are written at any depth with prompt 0",
            )  # fmt: skip
        else:
            self._held += 1
        return np.array(self._next_tokens(), np.int32)

    def generate(self, tokens: Array, count: int, on_token: Callable[[], object]) -> Array:
        if np.asarray(tokens).tolist() != self._last:
            raise SutError("vLLM can continue only with tokens that it wrote itself", code="engine_error")
        written = np.empty((len(tokens), count), np.int32)
        for step in range(count):
            written[:, step] = self._next_tokens()
            self._held += 1
            on_token()
        return written

    def _begin(self, ids: Array) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        room = self._config.model_config.max_model_len - ids.shape[1]
        asked = SamplingParams(
            temperature=0, max_tokens=max(1, room), ignore_eos=True, detokenize=False,
            output_kind=RequestOutputKind.DELTA,
        )  # fmt: skip
        for row in ids.tolist():
            name = str(next(self._numbers))
            self._engine.add_request(name, _make_input(row), asked)
            self._unread[name] = deque()
        self._held = ids.shape[1]

    def _next_tokens(self) -> list[int]:
        """Return one more token of each sequence, stepping until all of them have one."""
        waiting = self._unread.values()
        while not all(waiting):
            if not self._engine.has_unfinished_requests():
                raise SutError(
                    "vLLM ended a sequence before all its tokens were written", hint="ask for fewer tokens",
                    code="token_count",
                )  # fmt: skip
            for one in self._engine.step():
                if one.request_id in self._unread:
                    _check_unshared(one)
                    self._unread[one.request_id].extend(one.outputs[0].token_ids)
        self._last = [one.popleft() for one in waiting]
        return self._last

    def logits(self, ids: Array) -> Array:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        self.reset()
        size = int(self._config.model_config.hf_text_config.vocab_size)
        if size * len(ids) > _MOST_LOGITS:
            raise CapacityError(
                f"vLLM's logits of {len(ids)} positions with {size} tokens each take too much memory",
                hint="use another engine for the quality, such as transformers", code="engine_limit",
            )  # fmt: skip
        asked = SamplingParams(
            temperature=0, max_tokens=1, ignore_eos=True, detokenize=False, logprobs=-1, prompt_logprobs=-1,
            flat_logprobs=True, output_kind=RequestOutputKind.FINAL_ONLY,
        )  # fmt: skip
        self._engine.add_request(str(next(self._numbers)), _make_input(np.asarray(ids).tolist()), asked)
        found = [one for _ in iter(self._engine.has_unfinished_requests, False) for one in self._engine.step()]
        # Nothing stands before the first id; what follows the last one is told of the token that was written.
        told = [(found[-1].prompt_logprobs, place) for place in range(1, len(ids))]
        rows = np.empty((len(ids), size), np.float32)
        for row, (flat, place) in zip(rows, [*told, (found[-1].outputs[0].logprobs, 0)], strict=True):
            span = slice(flat.start_indices[place], flat.end_indices[place])
            row[flat.token_ids[span]] = flat.logprobs[span]
        self.reset()
        return rows

    def kv_bytes(self) -> int:
        return self._token_bytes * self._held * max(1, len(self._unread))

    def reset_memory_peak(self) -> None:
        import torch

        if self._device.startswith("cuda"):
            torch.cuda.reset_peak_memory_stats(self._device)

    def device_memory(self) -> DeviceMemory | None:
        import torch

        if not self._device.startswith("cuda"):
            return None
        peak, reserved = torch.cuda.max_memory_allocated(self._device), torch.cuda.max_memory_reserved(self._device)
        return DeviceMemory(self._weights, int(peak), int(reserved))


def _make_input(ids: list[int]) -> dict[str, Any]:
    """Return a prompt as vLLM takes it when nothing is left to be tokenised."""
    return {"type": "token", "prompt_token_ids": ids}


class VllmEngine:
    """Language models by vLLM: NVIDIA GPUs, or its build for CPUs."""

    name: ClassVar[str] = "vllm"
    formats: ClassVar[tuple[str, ...]] = (FOLDER,)
    reference_formats: ClassVar[tuple[str, ...]] = ()
    requirements: ClassVar[tuple[str, ...]] = ("vllm>=0.30",)
    extra: ClassVar[str] = "vllm"
    # The package of this name is the build for NVIDIA's cards.
    gpu_builds: ClassVar[tuple[GpuBuild, ...]] = (
        GpuBuild(
            "vllm", ("cuda",), requirements, systems=("linux",), machines=("x86_64", "aarch64"), cuda="13.0",
            otherwise=_CPU_HINT,
        ),
    )  # fmt: skip

    def preload(self) -> str:
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        Torch().preload()
        import vllm
        from vllm.v1.engine import llm_engine  # noqa: F401 - the engine's import, and not the model's load

        return str(vllm.__version__)

    def probe(self) -> EngineInfo:
        version, found = self.preload(), Torch().probe()
        units = [one for one in found.units if one.name.partition(":")[0] == _device_kind()]
        return EngineInfo(version, units, {**found.details, "torch": found.version})

    def load(self, path: str, options: LoadOptions) -> Session:  # noqa: ARG002 - the port's signature
        raise refuse_as_model(self.name)

    def load_llm(self, path: str, options: LlmOptions) -> VllmSession:
        import torch

        self.preload()
        _check_options(options)
        device = Torch().find_device(options.unit)
        torch.set_num_threads(options.threads)
        try:
            engine = _load_engine(Path(path), options)
            tokenizer = FolderTokenizer.load(Path(path))
        except PronyError:
            raise
        except (OSError, ValueError, KeyError, TypeError, ImportError, RuntimeError) as exc:
            raise describe_load_failure(self.name, Path(path).name, str(exc) or type(exc).__name__) from exc
        return VllmSession(engine, tokenizer, device, partial(_count_weights, Path(path)))


def _device_kind() -> str:
    from vllm.platforms import current_platform

    return str(current_platform.device_type)


def _check_options(options: LlmOptions) -> None:
    kind = _device_kind() or "no device"
    if options.unit not in (kind, f"{kind}:0"):
        raise CapacityError(
            f"this build of vLLM has no unit {options.unit}", code="unit_unavailable",
            hint=f"available: {kind}; it uses the first card that it sees (CUDA_VISIBLE_DEVICES)",
        )  # fmt: skip
    if options.precision not in ("default", *_CASTS):
        raise CapacityError(
            f"vllm cannot compute in {options.precision}",
            hint=f"use {', '.join(_CASTS)}, or a quantized model",
            code="precision_unavailable",
        )  # fmt: skip
    wrong = [name for name in options.options if name not in _OPTIONS]
    if wrong:
        raise InputError(f"vllm has no option {wrong[0]!r}", hint=f"it takes {', '.join(_OPTIONS)}")
    read_switch("eager", options.options)
    if options.batch * (options.context + _MARGIN) > _MOST_STEP_TOKENS:
        raise CapacityError(
            f"{options.batch} sequences of {options.context} tokens are more than vLLM reads in one step here "
            f"({_MOST_STEP_TOKENS})",
            hint="use fewer sequences, or shorter ones", code="engine_limit",
        )  # fmt: skip


def _load_engine(path: Path, options: LlmOptions) -> Any:
    """Return vLLM's engine, with a cache of the size that is needed and not of all memory that is there."""
    from transformers import AutoConfig
    from vllm import EngineArgs
    from vllm.v1.engine.llm_engine import LLMEngine

    own = _own_context(AutoConfig.from_pretrained(str(path), local_files_only=True).get_text_config())
    length = min(options.context + _MARGIN, own) if own else options.context + _MARGIN
    chosen = options.options
    more = {"attention_backend": chosen["attention"]} if "attention" in chosen else {}
    config = EngineArgs(
        model=str(path), skip_tokenizer_init=True, load_format=_load_format(path),
        dtype=_CASTS.get(options.precision, "auto"), max_model_len=length, max_num_seqs=options.batch,
        max_num_batched_tokens=options.batch * length, enable_prefix_caching=False,
        enforce_eager=read_switch("eager", chosen), max_logprobs=-1, logprobs_mode="raw_logits",
        **more,
    ).create_engine_config()  # fmt: skip
    block = int(config.cache_config.block_size)
    blocks = options.batch * -(-length // block) + _SPARE_BLOCKS
    config.cache_config.kv_cache_memory_bytes = blocks * block * _token_bytes(config)
    return LLMEngine.from_vllm_config(config, disable_log_stats=True)


def _own_context(config: Any) -> int:
    return int(getattr(config, "max_position_embeddings", 0) or 0)


def _token_bytes(config: Any) -> int:
    """Return what a token takes in the cache: keys and values of every layer."""
    model, parallel = config.model_config, config.parallel_config
    heads = int(model.get_num_kv_heads(parallel)) * int(model.get_head_size())
    return 2 * int(model.get_num_layers(parallel)) * heads * int(model.dtype.itemsize)


def _count_weights(path: Path, model: Any) -> tuple[int, int | None]:
    """Return the bytes of a model's weights, and how many there are.

    On a CPU, vLLM packs matrices into a form of its own and leaves empty ones behind: their size is that of the model
    in the type that it computes in. How many weights a quantised matrix holds cannot be told by its size.
    """
    kept = list(model.parameters())
    if not all(one.numel() for one in kept):
        parameters = sum(int(np.prod(shape)) for _, shape in _list_shapes(path))
        return parameters * max(one.element_size() for one in kept), parameters
    is_plain = all(one.is_floating_point() for one in kept)
    size = sum(one.numel() * one.element_size() for one in kept)
    return size, sum(one.numel() for one in kept) if is_plain else None


def _load_format(path: Path) -> str:
    """Return how vLLM gets the weights; those of a seeded folder come of its seed, the same as for every engine."""
    if not (path / SEEDED).is_file():
        return "auto"
    if sum(int(np.prod(shape)) for _, shape in _list_shapes(path)) > _SEEDED_ALIKE:
        return "dummy"
    from vllm.model_executor.model_loader import register_model_loader
    from vllm.model_executor.model_loader.base_loader import BaseModelLoader

    class SeededLoader(BaseModelLoader):  # type: ignore[misc]  # vLLM has no types here
        def download_model(self, model_config: Any) -> None:
            """Nothing is downloaded."""

        def load_weights(self, model: Any, model_config: Any) -> None:
            model.load_weights(_make_seeded(Path(model_config.model)))

    register_model_loader(_SEEDED_LOADER)(SeededLoader)
    return _SEEDED_LOADER


def _list_shapes(path: Path) -> list[tuple[str, tuple[int, ...]]]:
    """Return the names and shapes of a model's weights in Hugging Face's layout, without making them."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(str(path)))
    return [(name, tuple(one.shape)) for name, one in model.named_parameters()]


def _make_seeded(path: Path) -> Iterator[tuple[str, Any]]:
    import torch

    seed = json.loads((path / SEEDED).read_text())["seed"]
    for name, shape in _list_shapes(path):
        yield name, torch.from_numpy(seeded_values(name, shape, seed))


def _check_unshared(output: Any) -> None:
    """Fail where vLLM says that it took a part of the prompt from its cache."""
    if cached := getattr(output, "num_cached_tokens", None):
        raise cache_not_empty(f"vLLM took {cached} tokens of the prompt from its prefix cache")
