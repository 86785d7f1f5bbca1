"""Read samples and counters from a result folder for plots, thinned without losing extremes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prony.errors import NotFoundError, StoreError
from prony.instruments.requests import is_requests
from prony.instruments.samples import SAMPLES, TELEMETRY, read_frame
from prony.model.experiment_data import Entry

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    Numbers = np.ndarray[Any, np.dtype[Any]]

# Shown first where a machine tells many counters: what else ran, how fast the clock was, what it drew.
_FIRST = ("foreign", "busy", "mhz", "freq", "energy", "power", "temp", "throttl")


_GAP_NS = 200_000_000


@dataclass(frozen=True)
class PlottedRun:
    """The warm-up and measured samples of one repetition, in the order in which they were taken.

    `steady_from` is the index of the first sample that its numbers are made of; None where all measured ones are.
    """

    repetition: int
    index: Numbers
    ms: Numbers
    is_warmup: Numbers

    steady_from: int | None = None

    @property
    def counted_ms(self) -> Numbers:
        """The samples that the estimates are made of: measured and steady."""
        is_steady = self.index >= self.steady_from if self.steady_from is not None else True
        return self.ms[~self.is_warmup & is_steady]


@dataclass(frozen=True)
class Counter:
    """One counter of one probe: a state as it was read, or the rate of one that only grows."""

    probe: str
    name: str
    unit: str
    at_s: Numbers
    value: Numbers


def runs(entry: Entry) -> list[PlottedRun]:
    """Return the repetitions that have samples; none where the file is gone or damaged."""
    import polars as pl

    frame = find_frame(entry, SAMPLES)
    if frame is None or is_requests(frame):  # a load is drawn second by second, elsewhere
        return []
    warm = frame.filter(pl.col("phase").cast(pl.String).is_in(["warmup", "measure"])).sort("repetition", "index")
    return [_run(part, entry.summary.steady_from) for part in warm.partition_by("repetition", maintain_order=True)]


def _run(part: pl.DataFrame, steady_from: Mapping[int, int | None]) -> PlottedRun:
    import polars as pl

    return PlottedRun(
        repetition=int(part["repetition"][0]),
        index=part["index"].to_numpy(),
        ms=((part["end_ns"] - part["begin_ns"]) / 1e6).to_numpy(),
        is_warmup=(part["phase"].cast(pl.String) == "warmup").to_numpy(),
        steady_from=steady_from.get(int(part["repetition"][0])),
    )


def counters(entry: Entry, most: int) -> tuple[list[Counter], dict[int, int]]:
    """Return the counters that say most about the runs, and by run the instant (ns) that lies at second 0.

    Time stands still between runs: other jobs may have run meanwhile, and nothing was read.
    """
    import polars as pl

    frame = find_frame(entry, TELEMETRY)
    if frame is None or frame.is_empty():
        return [], {}
    frame = frame.sort("repetition", "at_ns")
    spans = frame.group_by("repetition", maintain_order=True).agg(
        pl.col("at_ns").min().alias("begin"), pl.col("at_ns").max().alias("end")
    )
    origins, passed = {}, 0
    for repetition, begin, end in spans.iter_rows():
        origins[int(repetition)] = int(begin) - passed
        passed += int(end) - int(begin) + _GAP_NS
    parts = frame.partition_by("probe", "counter", maintain_order=True)
    found = [one for part in parts if (one := _counter(part, origins)) is not None]
    return sorted(found, key=lambda one: (_rank(one.name), one.probe, one.name))[:most], origins


def _rank(name: str) -> int:
    return next((place for place, word in enumerate(_FIRST) if word in name), len(_FIRST))


def _counter(part: pl.DataFrame, origins: dict[int, int]) -> Counter | None:
    """Return one counter run after run, with a gap (not a number) between runs; None where it was read only once."""
    import numpy as np

    probe, name = str(part["probe"][0]), str(part["counter"][0])
    grows = name.endswith("_total")
    factor, unit = _rate_unit(name) if grows else (1.0, _state_unit(name))
    times: list[Numbers] = []
    values: list[Numbers] = []
    for run in part.partition_by("repetition", maintain_order=True):
        at_s = (run["at_ns"].to_numpy() - origins[int(run["repetition"][0])]) / 1e9
        value = run["value"].to_numpy()
        if grows:
            at_s, value = _rate(at_s, value)
        if at_s.size:
            times += [at_s, at_s[-1:]]
            values += [value * factor, np.array([np.nan])]
    if sum(one.size for one in values) < 3:
        return None
    shown = name.removesuffix("_total").removesuffix("_uj").removesuffix("_us").removesuffix("_s")
    return Counter(probe, shown, unit, np.concatenate(times), np.concatenate(values))


def _rate(at_s: Numbers, value: Numbers) -> tuple[Numbers, Numbers]:
    """Return what a growing counter gained for each second; a step back is a restart of the counter and is left out."""
    import numpy as np

    steps, lengths = np.diff(value), np.diff(at_s)
    good = (lengths > 0) & (steps >= 0)
    return at_s[1:][good], steps[good] / lengths[good]


def _state_unit(name: str) -> str:
    units = {"_mhz": "MHz", "_w": "W", "_mib": "MiB", "_c": "°C", "_ms": "ms"}
    return next((unit for ending, unit in units.items() if name.endswith(ending)), "")


def _rate_unit(name: str) -> tuple[float, str]:
    """Return how a growing counter reads for each second: energy is power, time is a share of a core."""
    rates = {
        "_uj_total": (1e-6, "W"), "_us_total": (1e-6, "s/s"), "_bytes_total": (2.0**-20, "MiB/s"),
        "cpu_busy_s_total": (1.0, "cores"), "_s_total": (1.0, "s/s"),
    }  # fmt: skip
    return next((rate for ending, rate in rates.items() if name.endswith(ending)), (1.0, "/s"))


def find_frame(entry: Entry, name: str) -> pl.DataFrame | None:
    """Return the file's rows; None where it is gone, because a report without one plot is still a report."""
    try:
        return read_frame(entry.folder, name)
    except (NotFoundError, StoreError):
        return None


def bands(values: Numbers, count: int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return (place, lowest, median, highest) of `count` equal stretches: no extreme is lost by thinning."""
    import numpy as np

    parts = np.array_split(values, min(count, values.size))
    edges = np.cumsum([0, *(part.size for part in parts)])
    middle = (edges[:-1] + edges[1:] - 1) / 2
    return (middle, *(np.array([pick(part) for part in parts]) for pick in (np.min, np.median, np.max)))
