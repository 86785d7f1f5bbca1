"""Calls of a PyTorch module as they are timed: eager, captured or compiled, on the CPU or on a device."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from prony.errors import SutError
from prony.ports.engine import DeviceMemory, HostCopies

MODES = ("eager", "graph", "compile", "max-autotune")
_CAPTURE_WARM_UPS = 3


@dataclass
class TorchWork:
    """A module with its arguments, and how it is to be run."""

    torch: Any
    module: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    mode: str
    device: str

    @property
    def backend(self) -> Any:
        """The part of PyTorch that drives this kind of device."""
        return getattr(self.torch, self.device.split(":", 1)[0])

    def run(self) -> Any:
        return self.module(*self.args, **self.kwargs)

    def wait(self) -> None:
        if self.device != "cpu":
            self.backend.synchronize()


class PreparedRun:
    """Runs the module; the first run compiles or captures it as its mode says."""

    def __init__(self, work: TorchWork) -> None:
        self._work = work
        self._stages: dict[str, tuple[int, int]] = {}
        first = {"graph": self._capture, "compile": self._compile, "max-autotune": self._compile}
        self.run: Callable[[], Any] = first.get(work.mode, work.run)

    def __call__(self) -> Any:
        return self.run()

    def stages(self) -> Mapping[str, tuple[int, int]]:
        return self._stages

    def count_compilations(self) -> int:
        if self._work.mode not in ("compile", "max-autotune"):
            return 0
        from torch._dynamo.utils import counters

        return int(counters["stats"]["unique_graphs"])

    def _compile(self) -> Any:
        work = self._work
        begin_ns = time.perf_counter_ns()
        chosen = {} if work.mode == "compile" else {"mode": work.mode}
        if chosen and work.device.startswith("cuda"):
            _tune_in_another_process()
        module = work.torch.compile(work.module, **chosen)
        try:
            answer = module(*work.args, **work.kwargs)
            work.wait()
        except RuntimeError as exc:
            if not chosen or _WRONG_ACCESS not in str(exc):
                raise
            raise SutError(_BAD_KERNEL, hint=_BAD_KERNEL_HINT, code="engine_error") from exc
        self._stages["compile"] = begin_ns, time.perf_counter_ns()
        _end_compile_helpers()
        self.run = lambda: module(*work.args, **work.kwargs)
        return answer

    def _capture(self) -> Any:
        work, cuda = self._work, self._work.backend
        here, aside = cuda.current_stream(), cuda.Stream()
        aside.wait_stream(here)
        with cuda.stream(aside):
            for _ in range(_CAPTURE_WARM_UPS):
                work.run()
        here.wait_stream(aside)
        work.wait()
        begin_ns = time.perf_counter_ns()
        graph = cuda.CUDAGraph()
        try:
            with cuda.graph(graph):
                answer = work.run()
        except RuntimeError as exc:
            hint = "use options.mode: eager or compile; a model that reads a value on the host cannot be captured"
            raise SutError(f"this model cannot be captured as a graph: {exc}", hint=hint, code="load_failed") from exc
        work.wait()
        self._stages["capture"] = begin_ns, time.perf_counter_ns()

        def replay() -> Any:
            graph.replay()
            return answer

        self.run = replay
        return replay()


_WRONG_ACCESS = "illegal memory access"
_BAD_KERNEL = "a kernel that PyTorch tried or chose by max-autotune used memory that it does not own"
_BAD_KERNEL_HINT = (
    "this is a fault of PyTorch or Triton: use options.mode: compile or graph, or another version of PyTorch"
)
_TUNING_VARIABLE = "TORCHINDUCTOR_AUTOTUNE_IN_SUBPROC"


def _tune_in_another_process() -> None:
    """Let kernels be tried in a process of their own, unless the environment says otherwise: one that uses memory that
    it does not own, as some of Triton's for depthwise convolutions do, ends the use of the card for its whole process.
    """
    if _TUNING_VARIABLE not in os.environ:
        from torch._inductor import autotune_process, config

        config.autotune_in_subproc = True
        _start_again_after_errors(autotune_process.TuningProcess)


def _start_again_after_errors(process: Any) -> None:
    """Replace the process that tries kernels after one that broke it: PyTorch 2.11 goes on with it, where no kernel can
    run any more, and so chooses none of those that it had yet to try.
    """
    get = process.get
    if hasattr(process, "restart") and get.__name__ != "get_or_start_again":

        def get_or_start_again(self: Any, *args: Any) -> Any:
            try:
                return get(self, *args)
            except RuntimeError as exc:
                if _WRONG_ACCESS not in str(exc):
                    raise
                self.restart()
                raise RuntimeError(_BAD_KERNEL) from exc

        process.get = get_or_start_again


def _end_compile_helpers() -> None:
    """End the processes that compiled and tried kernels: they would go on, and hold memory, beside what is timed."""
    with suppress(ImportError):
        from torch._inductor.async_compile import shutdown_compile_workers

        shutdown_compile_workers()
    with suppress(ImportError):
        from torch._inductor.autotune_process import get_tuning_process_pool

        if get_tuning_process_pool.cache_info().currsize:
            get_tuning_process_pool().shutdown()
            get_tuning_process_pool.cache_clear()  # should anything be compiled later, that starts another


class TorchDeviceCall:
    """One inference on a device: queued, waited for, marked and copied apart."""

    def __init__(self, work: TorchWork, feeds: Sequence[tuple[Any, Any]], *, inputs_at: str, outputs_at: str) -> None:
        """`feeds` has each input on the device with the same on the host."""
        self._work = work
        self._prepared = PreparedRun(work)
        self._feeds = [(there, _pin(work, here)) for there, here in feeds] if inputs_at == "host" else list(feeds)
        self._outputs: list[Any] | None = None
        self.device_id = card_id(work.torch, work.device) if work.device.startswith("cuda") else ""
        self.wait = work.wait
        self.stages = self._prepared.stages
        self.count_compilations = self._prepared.count_compilations
        ways = {
            ("device", "device"): self._run,
            ("host", "device"): self._run_fed,
            ("device", "host"): self._run_fetched,
        }
        self.launch: Callable[[], Any] = ways.get((inputs_at, outputs_at), self._run_fed_and_fetched)
        self._weights = _weight_bytes(work)

    def __call__(self) -> Any:
        answer = self.launch()
        self.wait()
        return answer

    def _run(self) -> Any:
        return self._prepared.run()

    def _run_fed(self) -> Any:
        self._copy_in()
        return self._prepared.run()

    def _run_fetched(self) -> Any:
        return self._fetch(self._prepared.run())

    def _run_fed_and_fetched(self) -> Any:
        self._copy_in()
        return self._fetch(self._prepared.run())

    def _copy_in(self) -> None:
        for there, here in self._feeds:
            there.copy_(here, non_blocking=True)

    def _fetch(self, answer: Any) -> Any:
        """Queue the copies of all outputs into buffers that are made once; return the buffers in the answer's form."""
        tensors = find_tensors(self._work.torch, answer)
        if self._outputs is None:
            self._outputs = [_empty_on_host(self._work, tensor) for tensor in tensors]
        for here, there in zip(self._outputs, tensors, strict=True):
            here.copy_(there, non_blocking=True)
        buffers = iter(self._outputs)
        return _with_tensors(self._work.torch, answer, buffers)

    def time_on_device(self) -> int | None:
        event = getattr(self._work.backend, "Event", None)
        if event is None or self._work.device == "mps":
            return None
        begin, end = event(enable_timing=True), event(enable_timing=True)
        begin.record()
        self.launch()
        end.record()
        self.wait()
        return int(begin.elapsed_time(end) * 1e6)

    def host_copies(self) -> HostCopies:
        work = self._work
        self._feeds = [(there, _pin(work, here)) for there, here in self._feeds]
        answer = self._prepared.run()
        self._fetch(answer)
        self.wait()
        memory = "pinned" if _can_pin(work) else "pageable"
        return HostCopies(
            copy_in=self._copy_in, copy_out=lambda: self._fetch(answer), roundtrip=self._run_fed_and_fetched,
            bytes_in=sum(_size(there) for there, _ in self._feeds),
            bytes_out=sum(_size(tensor) for tensor in find_tensors(work.torch, answer)), memory=memory,
        )  # fmt: skip

    def reset_memory_peak(self) -> None:
        if hasattr(self._work.backend, "reset_peak_memory_stats"):
            self._work.backend.reset_peak_memory_stats()

    def device_memory(self) -> DeviceMemory | None:
        backend = self._work.backend
        if not hasattr(backend, "max_memory_reserved"):
            return None
        return DeviceMemory(self._weights, int(backend.max_memory_allocated()), int(backend.max_memory_reserved()))


def card_id(torch: Any, device: str | int) -> str:
    """Return a CUDA card's UUID as the driver writes it; empty where this build does not tell."""
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return "" if uuid is None else f"GPU-{uuid}"


def _weight_bytes(work: TorchWork) -> int:
    """Return the bytes of the weights, as they lie on the device."""
    return sum(_size(tensor) for tensor in (*work.module.parameters(), *work.module.buffers()))


def _size(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _can_pin(work: TorchWork) -> bool:
    return work.device.startswith(("cuda", "xpu"))


def _pin(work: TorchWork, tensor: Any) -> Any:
    return tensor.pin_memory() if _can_pin(work) and not tensor.is_pinned() else tensor


def _empty_on_host(work: TorchWork, tensor: Any) -> Any:
    return work.torch.empty_like(tensor, device="cpu", pin_memory=_can_pin(work))


def find_tensors(torch: Any, raw: Any) -> list[Any]:
    """Return every tensor of a nested answer, in its order."""
    if isinstance(raw, torch.Tensor):
        return [raw]
    inner = raw.values() if isinstance(raw, Mapping) else raw if isinstance(raw, (list, tuple)) else ()
    return [tensor for value in inner for tensor in find_tensors(torch, value)]


def _with_tensors(torch: Any, raw: Any, replacements: Any) -> Any:
    """Return the answer with its tensors replaced, in the same order."""
    if isinstance(raw, torch.Tensor):
        return next(replacements)
    if isinstance(raw, Mapping):
        return {key: _with_tensors(torch, value, replacements) for key, value in raw.items()}
    if isinstance(raw, (list, tuple)):
        return [_with_tensors(torch, value, replacements) for value in raw]
    return raw
