"""Find when each position in a reply's body had arrived."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prony.ports.driver import Reply, Stamps


def arrivals_ns(reply: Reply, ends: Sequence[int]) -> Stamps | None:
    """Return, for each count of bytes, the stamp of the read that brought the last of them; None without stamps."""
    count = min(len(reply.sizes), len(reply.stamps_ns))
    if not count:
        return None
    reached = np.cumsum(np.asarray(reply.sizes[:count], dtype=np.int64))
    piece = np.searchsorted(reached, np.asarray(ends, dtype=np.int64), side="left")
    stamps: Stamps = np.asarray(reply.stamps_ns, dtype=np.int64)[np.minimum(piece, count - 1)]
    return stamps
