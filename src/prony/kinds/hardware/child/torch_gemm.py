"""Measure matrix products by PyTorch, on the CPU or a GPU, in every format that really runs there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prony.kinds.hardware.child.memory import free_bytes
from prony.kinds.hardware.child.shapes import (
    PATIENCE,
    Shape,
    count_operations,
    fits_in,
    shape_text,
    shapes_of,
)
from prony.kinds.hardware.child.torch_device import FREE_SHARE, TorchDevice
from prony.ports.engine import Engine
from prony.runner.child.readings import SuiteTest, rate_of

# By format: the name of torch's type, the bytes of an item, and whether only GPUs are asked.
_FORMATS: dict[str, tuple[str, int, bool]] = {
    "bf16": ("bfloat16", 2, False), "fp16": ("float16", 2, False), "fp8": ("float8_e4m3fn", 1, True),
    "tf32": ("float32", 4, True), "fp32": ("float32", 4, False), "fp64": ("float64", 8, False),
    "int8": ("int8", 1, False),
}  # fmt: skip
_INT8_SPREAD = 40.0
_LONGEST_NS = 10**9
_TRIAL: Shape = (256, 256, 256)


class TorchGemmSuite:
    """Products in each format; one that cannot be run here is left out, and the reason kept."""

    def __init__(self, options: Mapping[str, Any], engine: Engine) -> None:
        self._options = options
        self._device = TorchDevice.of(engine, str(options.get("unit") or "cpu"))
        self.device_id, self.settles = self._device.card, self._device.is_gpu
        self._left_out: dict[str, str] = {}
        self._best: dict[str, float] = {}
        self._since_best = 0

    def tests(self) -> Iterator[SuiteTest]:
        place = "gpu" if self._device.is_gpu else "cpu"
        for precision in self._options.get("precisions") or _FORMATS:
            _, item, is_for_gpu = _FORMATS[precision]
            if (is_for_gpu and not self._device.is_gpu) or not self._runs(precision):
                continue
            self._since_best = 0
            room = FREE_SHARE * (self._device.free_bytes() if self._device.is_gpu else free_bytes())
            for shape in shapes_of(self._options, place):
                if self._is_too_slow(precision, shape):
                    self._left_out[f"{precision} {shape_text(shape)}"] = (
                        f"takes over {_LONGEST_NS / 1e9:g} s per product"
                    )
                elif fits_in(shape, item, room) and self._since_best < PATIENCE:
                    yield self._test(precision, shape)

    def facts(self) -> Mapping[str, str]:
        seed = self._options.get("seed", 0)
        about = {"counting": "2 m n k operations", "data": f"seeded normal, seed {seed}"}
        return self._device.facts() | about | {f"{name} left out": why for name, why in self._left_out.items()}

    def close(self) -> None:
        return None

    def _runs(self, precision: str) -> bool:
        """Run a small product; a format that this card or build lacks is left out with what it said."""
        try:
            self._product(precision, _TRIAL)()
            self._device.wait()
        except (RuntimeError, NotImplementedError, AttributeError, TypeError) as exc:
            self._left_out[precision] = f"does not run on this machine: {str(exc).splitlines()[0][:200]}"
            return False
        return True

    def _is_too_slow(self, precision: str, shape: Shape) -> bool:
        """Say whether a product would take too long at the best rate so far; one that was asked for never does."""
        best = self._best.get(_metric(precision))
        return (
            not self._options.get("layers") and best is not None and count_operations(shape) / best > _LONGEST_NS * 1e3
        )

    def _test(self, precision: str, shape: Shape) -> SuiteTest:
        operations, metric = count_operations(shape), _metric(precision)
        value_of = rate_of(operations / 1e3)
        sample = self._device.sampler(self._product(precision, shape))

        def sample_and_note(count: int) -> list[int]:
            taken = sample(count)
            best = value_of(min(taken))
            self._since_best = 0 if best > self._best.get(metric, 0.0) else self._since_best + 1
            self._best[metric] = max(best, self._best.get(metric, 0.0))
            return taken

        return SuiteTest(metric, shape_text(shape), sample_and_note, value_of)

    def _product(self, precision: str, shape: Shape) -> Callable[[], Any]:
        torch, device = self._device.torch, self._device.name
        m, n, k = shape
        dtype = getattr(torch, _FORMATS[precision][0])
        if self._device.is_gpu:
            torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        seeded = torch.Generator(device=device).manual_seed(int(self._options.get("seed", 0)))
        a = torch.randn(m, k, generator=seeded, device=device)
        b = torch.randn(k, n, generator=seeded, device=device)
        if precision == "int8":
            a, b = (one.mul(_INT8_SPREAD).clamp(-127, 127).round().to(dtype) for one in (a, b))
            b = b.t().contiguous().t()  # the fast kernels want the second factor column by column
            return lambda: torch._int_mm(a, b)
        if precision == "fp8":
            one = torch.ones((), device=device)
            # The second factor has to lie column by column.
            a, b = a.to(dtype), b.t().contiguous().to(dtype).t()
            return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        a, b = a.to(dtype), b.to(dtype)
        out = torch.empty(m, n, device=device, dtype=dtype)
        return lambda: torch.mm(a, b, out=out)


def _metric(precision: str) -> str:
    return f"gemm_{precision}_{'tops' if precision == 'int8' else 'tflops'}"
