"""The incomplete beta function, and the distributions that it gives: binomial, Student's t and F.

Own lines and not scipy's, which would be a quarter of what a runner installs for four functions (decision 0076). Tests
hold them against scipy's.
"""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300
_EPSILON = 1e-16
_MOST_TERMS = 100_000
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
# Of the series of log gamma beyond Stirling's formula.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def binomial_cdf(successes: int, trials: int, share: float) -> float:
    """Return the probability of at most so many successes of `trials`, each with probability `share`."""
    if successes >= trials:
        return 1.0
    return incomplete_beta(trials - successes, successes + 1, 1 - share, share)


def student_cdf(freedom: float, t: float) -> float:
    """Return the probability that Student's t is at most `t`."""
    tail = 0.5 * incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t), t * t / (freedom + t * t))
    return 1 - tail if t > 0 else tail


def f_survival(freedom: float, other: float, f: float) -> float:
    """Return the probability that F, of so many degrees of freedom above and below, is more than `f`."""
    whole = other + freedom * f
    return incomplete_beta(other / 2, freedom / 2, other / whole, freedom * f / whole)


@lru_cache(maxsize=1024)
def student_quantile(freedom: float, share: float) -> float:
    """Return what Student's t is at most with probability `share`."""
    if share == 0.5:
        return 0.0
    if share > 0.5:
        return -student_quantile(freedom, 1 - share)
    low, high = -1.0, 0.0
    while student_cdf(freedom, low) > share:
        low *= 2
    t = low / 2
    for _ in range(200):
        missed = student_cdf(freedom, t) - share
        low, high = (low, t) if missed > 0 else (t, high)
        step = missed / _student_density(freedom, t)
        # Newton's step, unless it leaves the bracket.
        following = t - step if low < t - step < high else (low + high) / 2
        if abs(following - t) <= 1e-15 * abs(following):
            return following
        t = following
    return t


def incomplete_beta(a: float, b: float, x: float, y: float) -> float:
    """Return the regularised incomplete beta function of x for a and b; `y` is 1 - x, which the caller may know
    better."""
    if x <= 0 or y <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _by_fraction(b, a, y, x)
    return _by_fraction(a, b, x, y)


def _by_fraction(a: float, b: float, x: float, y: float) -> float:
    """Return it by its continued fraction, which converges fast below the mean."""
    front = _binomial_term(a, b, x, y) * b / (a + b)
    c, d = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _nonzero(1 + term * d)
            c = _nonzero(1 + term / c)
            found *= c * d
        if abs(c * d - 1) <= _EPSILON:
            break
    return front * found


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _binomial_term(a: float, b: float, x: float, y: float) -> float:
    """Return x**a * y**b * gamma(a+b+1) / gamma(a+1) / gamma(b+1), by Loader's way, which loses no digits of large
    numbers."""
    n = a + b
    log = _stirling_error(n) - _stirling_error(a) - _stirling_error(b) - _deviance(a, n * x) - _deviance(b, n * y)
    return math.sqrt(n / (2 * math.pi * a * b)) * math.exp(log)


def _stirling_error(z: float) -> float:
    """Return how much log gamma(z+1) is above Stirling's formula."""
    if z < 30:
        return math.lgamma(z + 1) - (z + 0.5) * math.log(z) + z - _HALF_LOG_TWO_PI
    return sum(factor / z ** (2 * index + 1) for index, factor in enumerate(_STIRLING))


def _deviance(value: float, mean: float) -> float:
    """Return value * log(value / mean) + mean - value, exactly also where both are nearly the same."""
    apart = value - mean
    if abs(apart) >= 0.1 * (value + mean):
        return value * math.log(value / mean) - apart
    v = apart / (value + mean)
    found, term = apart * v, 2 * value * v
    for index in range(1, 1000):
        term *= v * v
        following = found + term / (2 * index + 1)
        if following == found:
            break
        found = following
    return found


def _student_density(freedom: float, t: float) -> float:
    log = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - 0.5 * math.log(freedom * math.pi)
    return math.exp(log - (freedom + 1) / 2 * math.log1p(t * t / freedom))
