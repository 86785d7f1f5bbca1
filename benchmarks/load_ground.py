"""What the load generator's figures stand on: how much is asked, one load beside a fresh mock, bounds and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.load_tools import Ask, Told, Tool
from benchmarks.load_tree import FailedError
from prony.load.mock.start import Mock, MockOptions, serve_mock

FAST = MockOptions(ttft_ns=0, itl_ns=0, tokens=128)
PACED = MockOptions(ttft_ns=50_000_000, itl_ns=10_000_000, tokens=64)


@dataclass(frozen=True)
class Size:
    """How much is asked for each figure. The peers get fewer requests, because theirs take longer.

    For timing, each of the `streams` in flight comes `rounds` times, but at least and at most so many in all.
    """

    short: int
    short_peers: int
    bursts: int
    bursts_peers: int
    seconds: float
    streams: tuple[int, ...]
    rounds: int
    least_streams: int
    most_streams: int
    stalls: int
    starts: int


FULL = Size(
    short=300_000,
    short_peers=4000,
    bursts=20_000,
    bursts_peers=1000,
    seconds=10.0,
    streams=(1, 32, 128, 512),
    rounds=12,
    least_streams=100,
    most_streams=4096,
    stalls=400,
    starts=5,
)
QUICK = Size(
    short=100_000,
    short_peers=500,
    bursts=2000,
    bursts_peers=200,
    seconds=3.0,
    streams=(1, 32, 512),
    rounds=4,
    least_streams=8,
    most_streams=2048,
    stalls=40,
    starts=1,
)


@dataclass(frozen=True)
class Bound:
    """What must be true; `held` is None where it could not be judged, and `found` says why. A figure has no bound."""

    text: str
    held: bool | None
    found: str
    is_figure: bool = False

    def __str__(self) -> str:
        word = "figure" if self.is_figure else {True: "held", False: "MISSED", None: "not judged"}[self.held]
        return f"{word:11} {self.text}: {self.found}"


@dataclass
class Ground:
    """The tools that are here, and what one figure leaves for the next."""

    folder: Path
    size: Size
    tools: Sequence[Tool]
    short_per_s: dict[str, float] = field(default_factory=dict)

    @property
    def prony(self) -> Tool:
        return next(tool for tool in self.tools if tool.is_prony)

    def streaming(self) -> list[Tool]:
        return [tool for tool in self.tools if tool.streams]

    def load(self, tool: Tool, options: MockOptions, ask: Ask) -> tuple[Told, Mapping[str, Any]] | None:
        """Let a tool load a mock of its own; return what it told and the truth, or nothing if it failed."""
        try:
            with mocked(options) as mock:
                told = tool.load(replace(ask, url=mock.url, folder=self._place(tool)))
                return told, mock.truth()
        except (FailedError, LookupError, ValueError) as exc:  # what it wrote may be other than what is known of it
            print(f"{tool.name:18}gave no figure: {type(exc).__name__}: {exc}", flush=True)
            return None

    def _place(self, tool: Tool) -> Path:
        place = self.folder / tool.name
        place.mkdir(exist_ok=True)
        return place


@contextmanager
def mocked(options: MockOptions) -> Iterator[Mock]:
    with serve_mock(options) as mock:
        yield mock


def nowhere() -> tuple[str, Path]:
    """Return the address and the folder of an ask that `Ground.load` still has to place."""
    return "", Path()


def ratio_bound(text: str, ours: float, peers: Mapping[str, float], least: float) -> Bound:
    """Judge that we are at least so many times the best of the peers."""
    if not peers:
        return Bound(text, None, "no peer gave a figure")
    best = max(peers, key=lambda name: peers[name])
    times = ours / peers[best] if peers[best] else float("inf")
    return Bound(text, times >= least, f"{times:.1f} times {best}")


def number(value: float | None, width: int = 9, digits: int = 1) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:{width},.{digits}f}"
