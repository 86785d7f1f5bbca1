"""Caches of the transformers engine: one that grows, one of fixed size, and a decode step recorded as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from prony.errors import CapacityError, InputError

MODES = ("eager", "static", "graph")


class KeyValueCache(Protocol):
    """Keys and values of the tokens that a model has read. `kind` names it in results."""

    kind: ClassVar[str]

    def take(self, rows: int, tokens: int) -> Any:
        """Return what the model takes as its cache, with room for so many more tokens of each row."""

    def clear(self) -> None:
        """Forget all tokens."""

    def crop(self, length: int) -> None:
        """Keep the first `length` tokens of each row."""

    def count_bytes(self) -> int:
        """Return what the tokens of all rows take."""


class GrowingCache:
    """A cache that grows with each token: what transformers uses where nothing is asked for."""

    kind: ClassVar[str] = "dynamic"

    def __init__(self, config: Any) -> None:
        self._config = config
        self.clear()

    def take(self, rows: int, tokens: int) -> Any:  # noqa: ARG002 - it grows by itself
        return self._inner

    def clear(self) -> None:
        from transformers import DynamicCache

        self._inner = DynamicCache(config=self._config)

    def crop(self, length: int) -> None:
        # Every version of transformers takes how many tokens to remove, as a negative number.
        if (more := int(self._inner.get_seq_length()) - length) > 0:
            self._inner.crop(-more)

    def count_bytes(self) -> int:
        return _count_bytes(self._inner)


class FixedCache:
    """A cache whose room is taken at once, so that a step always works on the same memory."""

    kind: ClassVar[str] = "static"

    def __init__(self, config: Any, tokens: int) -> None:
        self._config, self._most = config, tokens
        self._inner: Any = None
        self._rows = self._length = 0

    def take(self, rows: int, tokens: int) -> Any:
        if self._length + tokens > self._most:
            raise CapacityError(
                f"the fixed cache holds {self._most} tokens, and {self._length + tokens} are needed",
                hint="use mode: eager, whose cache grows",
            )
        if rows != self._rows:
            self._inner, self._rows, self._length = self._make(), rows, 0
        self._length += tokens
        return self._inner

    def _make(self) -> Any:
        from transformers import StaticCache

        made = StaticCache(config=self._config, max_cache_len=self._most)
        if other := next((one for one in made.layers if type(one).__name__ != "StaticLayer"), None):
            raise InputError(
                f"a cache of fixed size does not fit this model: it has a {type(other).__name__}",
                hint="use mode: eager",
            )
        # Older versions take the length from what is written in the cache, which a recorded step does not see.
        if not all(hasattr(one, "cumulative_length") for one in made.layers):
            raise CapacityError(
                "a cache of fixed size needs a newer version of transformers",
                hint="use mode: eager, or prony engines add transformers",
                code="engine_limit",
            )
        return made

    def clear(self) -> None:
        self._length = 0
        if self._inner is not None:
            self._inner.reset()

    def crop(self, length: int) -> None:
        self._length = min(self._length, length)
        for layer in self._inner.layers:
            layer.cumulative_length.fill_(self._length)

    def count_bytes(self) -> int:
        if self._inner is None:
            return 0
        tokens = self._length or max(int(layer.cumulative_length) for layer in self._inner.layers)
        return _count_bytes(self._inner) * tokens // self._most


def _count_bytes(cache: Any) -> int:
    layers = [layer for layer in cache.layers if getattr(layer, "keys", None) is not None]
    kept = [one for layer in layers for one in (layer.keys, layer.values)]
    return sum(int(one.numel() * one.element_size()) for one in kept)


class GraphedStep:
    """One decode step, recorded once as a CUDA graph: a replay launches all its kernels by one call.

    Each replay reads the tokens that the one before chose. `rows` says for how many sequences it was recorded.
    """

    def __init__(self, torch: Any, model: Any, cache: FixedCache, rows: int, device: str) -> None:
        self.rows, self._cache, self._torch, self._device = rows, cache, torch, device
        self._fed = torch.zeros((rows, 1), dtype=torch.int64, device=device)

        def step() -> Any:
            out = model(self._fed, past_key_values=cache.take(rows, 1), use_cache=True, logits_to_keep=1)
            chosen = out.logits[:, -1].argmax(-1)
            self._fed.copy_(chosen.view(-1, 1))
            return chosen

        with torch.inference_mode(), torch.cuda.device(device):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):  # libraries choose their kernels and take their memory before the recording
                for _ in range(3):
                    step()
            torch.cuda.current_stream().wait_stream(side)
            cache.clear()
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._chosen = step()
            cache.clear()

    def write(self, tokens: Any, count: int, on_token: Callable[[], object]) -> list[list[int]]:
        """Replay the step `count` times, from a token of each row on; return the tokens that each replay chose."""
        rows = []
        with self._torch.inference_mode(), self._torch.cuda.device(self._device):
            self._fed.copy_(tokens.view(-1, 1))
            for _ in range(count):
                self._cache.take(self.rows, 1)
                self._graph.replay()
                rows.append(self._chosen.tolist())  # waits for the device, and for nothing else
                on_token()
        return rows
