"""What the benchmarks share: models of the zoo on disk, a command with its cost, an estimate of a ratio."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from prony.kinds.model.schema import ModelWorkload
from prony.model.job import Job
from prony.model.recipe import Measure
from prony.plugins.models.zoo import ZooSource
from prony.ports.models import FetchOptions

HAND_LOOP = Path(__file__).parent / "hand_loop.py"


@dataclass(frozen=True)
class Cost:
    """What one command took, its children included."""

    wall_s: float
    cpu_s: float
    output: str


def run(command: Sequence[str], **environment: str) -> Cost:
    """Run a command to its end; a failing one ends the benchmark with its own words."""
    before, begin = os.times(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)
    wall_s, after = time.perf_counter() - begin, os.times()
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(wall_s, cpu_s, done.stdout)


def describe(doc: str | None) -> ArgumentParser:
    """Return a parser whose `--help` says what the program measures."""
    return ArgumentParser(description=doc, formatter_class=RawDescriptionHelpFormatter)


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="prony-bench-") as folder:
        yield Path(folder)


def zoo_file(name: str, cache: Path) -> Path:
    options = FetchOptions(cache=cache, formats=(".onnx",))
    return ZooSource().fetch(f"zoo:{name}", options, lambda *_: None).path


def job(model: Path, number: int = 0, *, threads: int = 1, **measure: Any) -> Job:
    workload = ModelWorkload(kind="model", model=str(model), engine="onnxruntime", threads=threads)
    return Job(
        id=f"bench-{number:03d}", experiment_id="bench", name="bench", workload=workload, measure=Measure(**measure)
    )


def exec_command(jobs: Sequence[Job], folder: Path) -> list[str]:
    """Write job files and return the `prony exec` that runs them."""
    files = []
    for item in jobs:
        files.append(folder / f"{item.id}.json")
        files[-1].write_text(item.model_dump_json())
    return [sys.executable, "-m", "prony", "exec", *map(str, files), "--out", str(folder / "out")]


def in_turns(times: int, *works: Callable[[], float]) -> list[list[float]]:
    """Do every piece of work `times` times, A B B A A B..., so that drift of the machine falls on all alike."""
    taken: list[list[float]] = [[] for _ in works]
    for turn in range(times):
        order = range(len(works)) if turn % 2 == 0 else reversed(range(len(works)))
        for index in order:
            taken[index].append(works[index]())
    return taken


def ratio_text(values: Sequence[float], peers: Sequence[float]) -> str:
    """Return the median of the pairwise ratios with their range: on a noisy machine a ratio holds, a time does not."""
    ratios = sorted(value / peer for value, peer in zip(values, peers, strict=True))
    return f"{median(ratios):.3f} [{ratios[0]:.3f}, {ratios[-1]:.3f}]"
