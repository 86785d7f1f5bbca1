"""Find where a run's durations become steady."""

from __future__ import annotations

import math

import numpy as np

from prony.stats.quantiles import Array, quantile
from prony.stats.spread import MADN

# Below this many values no change of level can be told from noise: the series counts as steady throughout.
FEWEST = 12
_MOST = 1000
_WINDOW = 11
_KEEP_FIRST = 3
_LEAST_SHARE = 0.3
_TOLERANCE = 0.01
_SHORTEST = 2
_LAG = 5
# Levels that come and go: at least so many of them, that cross their mean so often, none with most of the time.
_FEWEST_LEVELS = 6
_FEWEST_CROSSINGS = 4
_LONGEST_SHARE = 0.4
_SPLITS = (0.25, 0.5, 0.75)


def steady_from(series: Array) -> int | None:
    """Return the first position of the steady block that reaches to the end, or None: there is no steady state.

    Spikes are clipped, the rest is cut into levels, and levels are joined from the end backwards while they agree
    within 1 % or two standard errors. Levels that come and go about one mean are one steady state too. A block of less
    than 30 % of the series is no steady state. A constant and a
    series of fewer than 12 values are steady from 0; one with a value that is not finite is never steady. A long
    series is judged by the medians of up to 1000 equal blocks, so the answer is then a multiple of the block.
    """
    if series.size < FEWEST:
        return 0
    levels, block = _condense(series)
    if not np.all(np.isfinite(levels)):
        return None
    clipped = _clip_spikes(levels)
    # A straight line without any noise has none in its steps either: then the step itself is the scale.
    sigma = max(_noise(clipped, width) for width in (1, _LAG)) or _scale(np.diff(clipped))
    if sigma == 0:
        return 0
    ends = cuts(clipped / sigma, penalty=4 * math.log(clipped.size))
    start = min(_steady_block(clipped, ends, sigma), _recurring_block(clipped, ends))
    return start * block if clipped.size - start >= _LEAST_SHARE * clipped.size else None


def cuts(values: Array, *, penalty: float) -> list[int]:
    """Return where each level of a piecewise constant series ends: the cheapest segmentation, found by PELT.

    The cost of a segment is its sum of squares about its mean, and each segment beyond the first costs `penalty`.
    The same optimum as `ruptures.KernelCPD("linear")`, whose import takes a second and this far less.
    """
    count = values.size
    centred = values - np.mean(values)
    if float(np.dot(centred, centred)) <= penalty:  # what no cut could save is less than what one costs
        return [count]
    sums = np.concatenate(([0.0], np.cumsum(centred)))
    squares = np.concatenate(([0.0], np.cumsum(centred * centred)))
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    previous = np.zeros(count + 1, dtype=np.int64)
    starts = np.zeros(1, dtype=np.int64)
    for end in range(_SHORTEST, count + 1):
        totals = sums[end] - sums[starts]
        costs = best[starts] + (squares[end] - squares[starts]) - totals * totals / (end - starts)
        choice = int(np.argmin(costs))
        best[end] = costs[choice] + penalty
        previous[end] = starts[choice]
        starts = np.append(starts[costs <= best[end]], end - _SHORTEST + 1)
    ends = [count]
    while previous[ends[-1]] > 0:
        ends.append(int(previous[ends[-1]]))
    return ends[::-1]


def _condense(series: Array) -> tuple[Array, int]:
    """Return at most 1000 medians of equal blocks, and the size of a block; a rest at the end joins no block."""
    block = -(-series.size // _MOST)
    if block == 1:
        return series.astype(np.float64), 1
    whole = series[: series.size // block * block].reshape(-1, block)
    return np.median(whole, axis=1).astype(np.float64), block


def _clip_spikes(values: Array) -> Array:
    """Return the series with spikes cut to 4 MAD about a running median; the first three may be a real warm-up."""
    reach = _WINDOW // 2
    padded = np.pad(values, reach, mode="reflect")
    centre = np.median(np.lib.stride_tricks.sliding_window_view(padded, _WINDOW), axis=1)
    limit = 4 * _scale(values - centre)
    clipped: Array = np.clip(values, centre - limit, centre + limit)
    clipped[:_KEEP_FIRST] = values[:_KEEP_FIRST]
    return clipped


def _scale(residuals: Array) -> float:
    """Return a robust standard deviation about zero; by the mean deviation where more than half are zero."""
    sizes = np.abs(residuals)
    return MADN * quantile(np.sort(sizes), 0.5) or math.sqrt(math.pi / 2) * float(np.mean(sizes))


def _noise(values: Array, width: int) -> float:
    """Return the standard deviation that neighbouring means of so many values suggest for one value.

    Differences do not see the level, and their median does not see a constant drift. Of independent values every width
    gives the same; where values follow their neighbours a wider mean shows how much less each of them tells.
    """
    means = values[: values.size // width * width].reshape(-1, width).mean(axis=1)
    steps = np.diff(means)
    return _scale(steps - quantile(np.sort(steps), 0.5)) * math.sqrt(width / 2)


def _steady_block(values: Array, ends: list[int], sigma: float) -> int:
    """Walk back over the levels from the end and return where the block that agrees begins.

    The walk begins with the last tenth at least: two odd values at the very end are no new state.
    """
    start = max([0, *(end for end in ends if end <= values.size * 0.9)])
    for low, high in reversed([(low, high) for low, high in zip([0, *ends], ends, strict=False) if high <= start]):
        block, level = values[start:], values[low:high]
        noise = max(sigma, float(np.std(block)))
        error = noise * math.sqrt(1 / block.size + 1 / level.size)
        mean = float(np.mean(block))
        if abs(float(np.mean(level)) - mean) > max(_TOLERANCE * abs(mean), 2 * error):
            break
        start = low
    return start


def _recurring_block(values: Array, ends: list[int]) -> int:
    """Return where the longest tail begins whose levels come and go about one mean, or the end: there is none."""
    starts = np.array([0, *ends[:-1]])
    sizes = np.diff([0, *ends]).astype(np.float64)
    means = np.add.reduceat(values, starts) / sizes
    for first in range(len(ends) - _FEWEST_LEVELS + 1):
        low = int(starts[first])
        if _levels_recur(means[first:], sizes[first:], values[low:]):
            return low
    return values.size


def _levels_recur(means: Array, sizes: Array, values: Array) -> bool:
    """Say whether levels (their means and sizes) cross their common mean often, and no part of the values stands out.

    The first level lies within what the others reach; otherwise it is the end of a warm-up. Parts may differ by the
    error that their number of levels explains: a drift that the levels hide is not larger than that.
    """
    centre = float(np.mean(values))
    crossings = int(np.count_nonzero(np.diff(means > centre)))
    others = means[1:]
    if crossings < _FEWEST_CROSSINGS or not np.min(others) <= means[0] <= np.max(others):
        return False
    if np.max(sizes) > _LONGEST_SHARE * values.size:
        return False
    spread = math.sqrt(np.average((means - centre) ** 2, weights=sizes))
    # Levels of unequal length tell as much as this many equal ones.
    count = values.size**2 / float(np.dot(sizes, sizes))
    return all(_parts_agree(values, share, spread / math.sqrt(count * share * (1 - share))) for share in _SPLITS)


def _parts_agree(values: Array, share: float, error: float) -> bool:
    """Say whether the means of the first share and of the rest agree within 1 % or 1.5 standard errors."""
    split = round(share * values.size)
    apart = abs(float(np.mean(values[:split])) - float(np.mean(values[split:])))
    return apart <= max(_TOLERANCE * abs(float(np.mean(values))), 1.5 * error)
