"""Time fixed work on a CUDA card: one kernel that its arithmetic bounds, and one that its memory bounds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

_SIDE = 3072
_BYTES = 2**28  # far more than any card's cache
_ROOM = 4 * _BYTES
_BURST_MS = 8.0  # several times what a card works for one process before it turns to another
_FEWEST, _MOST = 5, 200


def time_fixed_work(torch: Any, device: str) -> dict[str, list[int]]:
    """Return the nanoseconds of each kernel of two bursts; nothing where the card's memory is nearly full."""
    cuda = torch.cuda
    if cuda.mem_get_info(device)[0] < _ROOM:
        return {}
    with cuda.device(device):
        cuda.synchronize()
        found = _time_both(torch, device)
        cuda.empty_cache()  # so that nothing of it is counted as the model's memory
    return found


def _time_both(torch: Any, device: str) -> dict[str, list[int]]:
    seeded = torch.Generator(device=device).manual_seed(7)
    a, b = (torch.randn(_SIDE, _SIDE, generator=seeded, device=device).half() for _ in range(2))
    c, large = torch.empty_like(a), torch.ones(_BYTES // 4, device=device)
    compute = _time_burst(torch.cuda, lambda: torch.mm(a, b, out=c))
    return {"compute": compute, "memory": _time_burst(torch.cuda, large.neg_)}


def _time_burst(cuda: Any, launch: Callable[[], Any]) -> list[int]:
    each_ms = sum(_time_spans(cuda, launch, _FEWEST)) / _FEWEST / 1e6
    return _time_spans(cuda, launch, max(_FEWEST, min(_MOST, round(_BURST_MS / each_ms))))


def _time_spans(cuda: Any, launch: Callable[[], Any], count: int) -> list[int]:
    """Queue the kernels with a mark between any two, so that whatever the card does for others lies in a span."""
    marks = [cuda.Event(enable_timing=True) for _ in range(count + 1)]
    launch()  # the first mark must not be the beginning of an idle time
    marks[0].record()
    for mark in marks[1:]:
        launch()
        mark.record()
    cuda.synchronize()
    return [max(1, int(begin.elapsed_time(end) * 1e6)) for begin, end in pairwise(marks)]
