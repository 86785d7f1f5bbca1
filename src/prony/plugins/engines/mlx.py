"""Engine for language models in Hugging Face's layout, by MLX and mlx-lm: Apple silicon, or MLX's build for CPUs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from prony.errors import CapacityError, InputError
from prony.plugins.engines.folder_tokenizer import FolderTexts, FolderTokenizer
from prony.ports.engine import Array, Effect, EngineInfo, LoadOptions, Session, Unit
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
# Above, writing seeded weights one by one takes minutes.
_MOST_SEEDED = 300_000_000


class MlxLlm(FolderTexts):
    """A model, and a cache that grows. MLX computes lazily: every step ends by bringing its ids to the host."""

    device_id: str | None = None

    def __init__(self, model: Any, config: Mapping[str, Any], tokenizer: FolderTokenizer, options: LlmOptions) -> None:
        import mlx.core as mx
        from mlx.utils import tree_flatten

        self._mx, self._model, self._config, self._tokenizer = mx, model, config, tokenizer
        self._options = options
        weights = [one for _, one in tree_flatten(model.parameters())]
        self._weights = sum(int(one.nbytes) for one in weights)
        # A quantised matrix packs several weights into a number: how many there are cannot be told by their sizes.
        self._parameters = None if "quantization" in config else sum(int(one.size) for one in weights)
        self._kind = str(weights[0].dtype).rpartition(".")[2]
        self._held = 0
        self.reset()
        self.prefill(np.zeros((1, 1), np.int32))
        self._token_bytes = self._measure_token()
        self.reset()

    def _measure_token(self) -> int:
        """Return what a token takes in the cache, which has room for more of them than it holds."""
        kept = [part for layer in self._cache for part in layer.state if getattr(part, "ndim", 0) == 4]
        return sum(int(one.nbytes) // one.shape[-2] for one in kept)

    def effect(self) -> Effect:
        names = {cast: name for name, cast in _CASTS.items()}
        device = "gpu" if self._mx.default_device() == self._mx.Device(self._mx.gpu) else "cpu"
        told = "MLX decides how many threads it uses"
        return Effect(device, names.get(self._kind, self._kind), None, details={"cache": "grows", "threads": told})

    def facts(self) -> LlmFacts:
        return LlmFacts(
            architecture=str(self._config["model_type"]), vocabulary=int(self._config["vocab_size"]),
            context=int(self._config.get("max_position_embeddings") or 0), weights_bytes=self._weights,
            kv_token_bytes=self._token_bytes, parameters=self._parameters,
            tokenizer_sha256=self._tokenizer.words_sha256, template_sha256=self._tokenizer.template_sha256,
        )  # fmt: skip

    def end_ids(self) -> frozenset[int]:
        return self._join_ends(self._config.get("eos_token_id"))

    def reset(self) -> None:
        from mlx_lm.models.cache import make_prompt_cache

        self._cache = make_prompt_cache(self._model)
        self._held = 0

    def prefill(self, ids: Array) -> Array:
        return np.array(self._step(self._mx.array(ids)).tolist(), np.int32)

    def _step(self, ids: Any) -> Any:
        logits = self._model(ids, cache=self._cache)
        self._held += ids.shape[1]
        return self._mx.argmax(logits[:, -1], axis=-1)

    def generate(self, tokens: Array, count: int, on_token: Callable[[], object]) -> Array:
        rows, last = [], self._mx.array(tokens)
        for _ in range(count):
            last = self._step(last.reshape(-1, 1))
            rows.append(last.tolist())  # computes what was asked for, and waits for it
            on_token()
        return np.array(rows, np.int32).T

    def verify(self, ids: Array) -> Array:
        logits = self._model(self._mx.array(ids.reshape(1, -1)), cache=self._cache)
        self._held += ids.size
        return np.array(self._mx.argmax(logits[0], axis=-1).tolist(), np.int32)

    def rewind(self, length: int) -> None:
        from mlx_lm.models.cache import can_trim_prompt_cache, trim_prompt_cache

        if not can_trim_prompt_cache(self._cache):
            raise CapacityError(
                "mlx cannot take back single tokens from this model's cache", hint="remove workload.draft",
                code="draft_unavailable",
            )  # fmt: skip
        trim_prompt_cache(self._cache, self._held - length)
        self._held = length

    def logits(self, ids: Array) -> Array:
        self.reset()
        found = self._model(self._mx.array(np.asarray(ids, np.int32).reshape(1, -1)), cache=self._cache)[0]
        rows: Array = np.array(found.astype(self._mx.float32))
        self.reset()
        return rows

    def kv_bytes(self) -> int:
        tokens = self._held or max((int(getattr(one, "offset", 0)) for one in self._cache), default=0)
        return self._token_bytes * tokens * self._options.batch


class Mlx:
    """Language models by MLX."""

    name: ClassVar[str] = "mlx"
    formats: ClassVar[tuple[str, ...]] = (FOLDER,)
    reference_formats: ClassVar[tuple[str, ...]] = ()
    # On a Mac, mlx-lm brings MLX with it; elsewhere its build for CPUs is a package of its own.
    requirements: ClassVar[tuple[str, ...]] = (
        "mlx-lm>=0.30",
        'mlx-cpu; sys_platform == "linux"',
        'mlx; sys_platform == "linux"',
    )
    extra: ClassVar[str] = "mlx"
    speculates: ClassVar[bool] = True

    def preload(self) -> str:
        import mlx_lm
        from mlx_lm.models import cache, llama  # noqa: F401 - most models are of its kind

        return str(mlx_lm.__version__)

    def probe(self) -> EngineInfo:
        import mlx.core as mx

        precisions = ("default", *_CASTS)
        units = [Unit("cpu", "MLX on the CPU", precisions)]
        if mx.is_available(mx.gpu):
            units.append(Unit("gpu", "MLX on the GPU", precisions))
        return EngineInfo(self.preload(), units)

    def load(self, path: str, options: LoadOptions) -> Session:  # noqa: ARG002 - the port's signature
        raise refuse_as_model(self.name)

    def load_llm(self, path: str, options: LlmOptions) -> MlxLlm:
        import mlx.core as mx

        known = ("cpu", "gpu") if mx.is_available(mx.gpu) else ("cpu",)
        if options.unit not in known:
            raise CapacityError(
                f"this build of MLX has no unit {options.unit}",
                hint=f"available: {' and '.join(known)}; the GPU needs a Mac with Apple silicon",
                code="unit_unavailable",
            )
        if options.precision not in ("default", *_CASTS):
            raise CapacityError(
                f"mlx cannot compute in {options.precision}",
                hint=f"use {', '.join(_CASTS)}, or convert the model: mlx_lm.convert -q",
                code="precision_unavailable",
            )  # fmt: skip
        if options.options:
            raise InputError(f"mlx has no option {next(iter(options.options))!r}", hint="it has no options")
        mx.set_default_device(mx.cpu if options.unit == "cpu" else mx.gpu)
        try:
            model, config = _load_model(Path(path))
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as exc:
            raise describe_load_failure(self.name, Path(path).name, str(exc) or type(exc).__name__) from exc
        if options.precision in _CASTS:
            model.set_dtype(getattr(mx, _CASTS[options.precision]))
        return MlxLlm(model, config, FolderTokenizer.load(Path(path)), options)


def _load_model(folder: Path) -> tuple[Any, Mapping[str, Any]]:
    from mlx_lm.utils import load_model

    if (folder / SEEDED).is_file():
        return _make_seeded(folder)
    found: tuple[Any, Mapping[str, Any]] = load_model(folder)
    return found


def _make_seeded(folder: Path) -> tuple[Any, Mapping[str, Any]]:
    """Make a model with the weights that every engine gives it, by their names in Hugging Face's layout."""
    import mlx.core as mx
    from mlx.utils import tree_flatten
    from mlx_lm.models import llama

    config = json.loads((folder / "config.json").read_text())
    seed = json.loads((folder / SEEDED).read_text())["seed"]
    model = llama.Model(llama.ModelArgs.from_dict(config))
    shapes = [(name, one.shape) for name, one in tree_flatten(model.parameters())]
    if sum(int(np.prod(shape)) for _, shape in shapes) > _MOST_SEEDED:
        raise ValueError(f"seeded weights are made up to {_MOST_SEEDED // 10**6} million parameters: use zoo:llm-135m")
    kind = getattr(mx, str(config.get("dtype") or config.get("torch_dtype") or "float32"))
    model.load_weights([(name, mx.array(seeded_values(name, shape, seed)).astype(kind)) for name, shape in shapes])
    return model, config
