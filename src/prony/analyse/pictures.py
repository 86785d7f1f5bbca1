"""Bin and bucket samples for charts: histograms, cumulative shares and timelines of runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from prony.instruments.per_second import quantiles
from prony.model.estimate import Summary
from prony.model.metric import key_of
from prony.model.picture import Bucket, DrawnRun, SharePoint
from prony.stats.quantiles import Array

# Those that have a number for each sample, request or gap.
_SAMPLED = (
    "inference_ms", "e2e_ms", "service_ms", "ttfb_ms", "ttft_ms", "ttft_content_ms", "itl_ms", "tpot_ms",
    "tokens_per_s_per_user", "sent_late_ms", "quality",
)  # fmt: skip


@dataclass(frozen=True)
class Track:
    """One run in time, in nanoseconds: successes and failures by when they ended, and the part that counts."""

    repetition: int
    ends_ns: Array
    values: Array
    failed_ns: Array
    window_ns: tuple[int, int]
    origin_ns: int


def sampled_metrics(summary: Summary, headline: str) -> tuple[str, ...]:
    """Return the metrics of the glossary that have a number for each sample, the headline's first."""
    known = {key_of(key).metric for key in summary.estimates}
    first = key_of(headline).metric
    return tuple(sorted((name for name in _SAMPLED if name in known), key=lambda name: name != first))


# From so wide a range on, bins of equal ratio show more than bins of equal width.
_WIDE = 5.0
_SHARES = (*(share / 100 for share in range(100)), 0.995, 0.999, 0.9999, 1.0)
_NS_PER_S = 1e9


def edges_of(runs: Collection[Array], bins: int) -> tuple[Array, bool]:
    """Return the edges of so many bins over all that was measured, and whether they grow by a ratio."""
    low = float(min(values.min() for values in runs))
    high = float(max(values.max() for values in runs))
    is_log = low > 0 and high / low > _WIDE
    if high <= low:
        margin = abs(low) * 0.01 or 0.5
        low, high = low - margin, high + margin
    edges: Array = np.geomspace(low, high, bins + 1) if is_log else np.linspace(low, high, bins + 1)
    edges[0], edges[-1] = low, high  # rounding must leave no extreme outside
    return edges, is_log


def drawn_run(
    repetition: int, values: Array, edges: Array, excluded: Mapping[int, str], used: Collection[int]
) -> DrawnRun:
    counts, _ = np.histogram(values, bins=edges)
    low, median, high = (float(pick(values)) for pick in (np.min, np.median, np.max))
    return DrawnRun(
        repetition=repetition, is_used=repetition in used, excluded=excluded.get(repetition, ""),
        count=int(values.size), counts=tuple(counts.tolist()), low=low, median=median, high=high,
    )  # fmt: skip


def shares(runs: Sequence[Array]) -> tuple[SharePoint, ...]:
    """Return one curve of several runs: at each share the median of what the runs say, and how far they lie apart."""
    if not runs:
        return ()
    told = np.array([np.quantile(values, _SHARES) for values in runs])
    middle, low, high = np.median(told, axis=0), told.min(axis=0), told.max(axis=0)
    rows = zip(_SHARES, middle.tolist(), low.tolist(), high.tolist(), strict=True)
    return tuple(SharePoint(share=share, value=value, low=a, high=b) for share, value, a, b in rows)


def width_of(tracks: Sequence[Track], most: int) -> float:
    """Return how many seconds a bucket lasts, so that the longest run has no more of them than asked for."""
    longest = max((int(_last(one)) - one.origin_ns) / _NS_PER_S for one in tracks)
    return max(longest / most, 1e-6)


def buckets(track: Track, width_s: float) -> tuple[Bucket, ...]:
    """Cut a run into stretches of equal length; lowest and highest are kept, so that no extreme is lost."""
    width_ns = width_s * _NS_PER_S
    count = int((_last(track) - track.origin_ns) / width_ns) + 1
    place = _places(track.ends_ns, track, width_ns, count)
    failed = np.bincount(_places(track.failed_ns, track, width_ns, count), minlength=count)
    sizes = np.bincount(place, minlength=count)
    lowest, highest = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(lowest, place, track.values)
    np.maximum.at(highest, place, track.values)
    # Medians of whole nanoseconds, because those are sorted together with their bucket in one go.
    middle = quantiles(place, np.rint(track.values * 1e6).astype(np.int64), 0.5, count) / 1e6
    found = []
    for at in range(count):
        some = bool(sizes[at])
        found.append(
            Bucket(
                at_s=round(at * width_s, 6), count=int(sizes[at]), failed=int(failed[at]),
                low=float(lowest[at]) if some else None, median=float(middle[at]) if some else None,
                high=float(highest[at]) if some else None,
            )
        )  # fmt: skip
    return tuple(found)


def _last(track: Track) -> int:
    ends = [int(one.max()) for one in (track.ends_ns, track.failed_ns) if one.size]
    return max([*ends, track.origin_ns + 1])


def _places(at_ns: Array, track: Track, width_ns: float, count: int) -> Array:
    places: Array = ((at_ns - track.origin_ns) / width_ns).astype(np.int64).clip(0, count - 1)
    return places
