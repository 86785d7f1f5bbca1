"""Ask NVIDIA's driver which cards CUDA sees, in CUDA's own order, by the standard library alone."""

from __future__ import annotations

import ctypes
import sys
import uuid

_LIBRARIES = {"win32": "nvcuda.dll"}


def list_cuda_cards() -> list[str]:
    """Return the UUID of each card as the driver's tools write it; none without a driver or a card."""
    try:
        library = ctypes.CDLL(_LIBRARIES.get(sys.platform, "libcuda.so.1"))
    except OSError:
        return []
    count = ctypes.c_int()
    if library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(count)):
        return []
    found = []
    for index in range(count.value):
        number = (ctypes.c_ubyte * 16)()
        failed = library.cuDeviceGetUuid(number, index)
        found.append("" if failed else f"GPU-{uuid.UUID(bytes=bytes(number))}")
    return found


def find_cuda_card(unit: str, cards: list[str]) -> int | None:
    """Return the number of the card that a unit names: `cuda` the first, `cuda-1`, or `cuda:GPU-` and its UUID."""
    kind, _, wanted = unit.partition(":")
    number = kind.partition("-")[2]
    if wanted:
        named = [index for index, one in enumerate(cards) if one.startswith(f"GPU-{wanted.removeprefix('GPU-')}")]
        return named[0] if len(named) == 1 else None
    if not number:
        return 0
    return int(number) if number.isdecimal() and int(number) < len(cards) else None
