"""Tell whether a metric depends on the machine: times, rates, power and memory do.

A loss or an accuracy is computed: the same script tells the same number on a busy machine, only later.
"""

from __future__ import annotations

import re

from prony.model.metric import METRICS, Metric

_TIMES = (
    "ns us µs μs ms s sec secs second seconds min mins minute minutes h hr hour hours cycles ticks "
    "nanoseconds microseconds milliseconds"
)
_POWERS = "w mw kw j mj kj wh kwh watt watts joule joules v a hz khz mhz ghz c °c"
_MEMORIES = "b kb mb gb tb kib mib gib tib byte bytes kbyte mbyte gbyte page pages"
_RATES = "fps ips qps rps tps ops iops flops kflops mflops gflops tflops tops bps kbps mbps gbps per rate bpm rpm"
_UNITS = frozenset(f"{_TIMES} {_POWERS} {_MEMORIES} {_RATES}".split())
_MEASURES = (
    "time times timing duration latency delay elapsed wall throughput speed bandwidth memory mem rss vram ram power "
    "energy util utilization utilisation cpu gpu usage temperature ttft tpot itl e2e"
)
# Words of a name that has no unit: what looks like a measure of the machine is taken for one.
_WORDS = _UNITS - {"v", "a", "b", "c", "h", "j", "w", "page", "pages"} | frozenset(_MEASURES.split())
_SHARES = ("1", "%", "percent")
_PARTS = re.compile(r"[^a-z0-9°µμ]+")


def depends_on_machine(metric: Metric) -> bool:
    """Would another load on the machine change it? The unit decides where there is one, else the words of the name."""
    if metric.name in METRICS:
        return True
    unit = metric.unit.strip().lower()
    if unit and unit not in _SHARES:
        return "/" in unit or not _UNITS.isdisjoint(_PARTS.split(unit))
    words = _WORDS - {"rate"} if unit else _WORDS  # a rate in percent is a share of something
    return not words.isdisjoint(_PARTS.split(metric.name.lower()))
