"""What `from benchmarkai import emit` imports in a script that was written for Benchmark AI.

It keeps that library's contract: numbers by name, TypeError for what is no mapping, ValueError for an empty one, and
outside of Prony the environment variable BENCHMARK_AI says where they go (`stdout` or `fifo`). Written so that Python
2.7 can run it.
"""

import json
import math
import os
import time

try:
    from collections.abc import Mapping
except ImportError:  # Python 2
    from collections import Mapping  # type: ignore[attr-defined]

_FILE = "PRONY_EMIT_FILE"
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_TARGET = os.environ.get("BENCHMARK_AI", "stdout")
_FIFO = os.environ.get("BENCHMARK_AI_FIFO_FILEPATH", "/tmp/benchmark-ai/fifo")
_WAIT_S = float(os.environ.get("BENCHMARK_AI_FIFO_MAX_WAIT_TIME", "10"))
_STEP_S = float(os.environ.get("BENCHMARK_AI_FIFO_WAIT_TIME_STEP", "0.5"))

if _FILE not in os.environ and _TARGET not in ("stdout", "fifo"):
    raise ValueError("BENCHMARK_AI is %r: it must be stdout or fifo" % _TARGET)


class FifoNotCreatedInTimeError(Exception):
    """Nobody made the pipe that BENCHMARK_AI_FIFO_FILEPATH names."""


def emit(metrics):
    # type: (Mapping[str, object]) -> None
    """Tell numbers by their names; a number may be written as text."""
    if not isinstance(metrics, Mapping):
        raise TypeError("metrics must be a mapping and is a " + type(metrics).__name__)
    if not metrics:
        raise ValueError("metrics is empty")
    if _FILE in os.environ:
        _append(os.environ[_FILE], metrics)
    elif _TARGET == "fifo":
        _send(json.dumps(dict(metrics)) + "\n")
    else:
        print(json.dumps(dict(metrics)))  # noqa: T201 - this is what the library does


def _append(path, metrics):
    # type: (str, Mapping[str, object]) -> None
    """Write one record as `prony.emit` does; a lost file is no reason to end the script."""
    numbers, refused = {}, {}
    for name in metrics:
        number = _number(metrics[name])
        if isinstance(number, float):
            numbers[str(name)] = number
        else:
            refused[str(name)] = number
    record = {"metrics": numbers, "timestamp": time.time(), "origin": "benchmarkai"}  # type: dict[str, object]
    if refused:
        record["refused"] = refused
    if hasattr(time, "perf_counter_ns"):
        record["at_ns"] = time.perf_counter_ns()
    ranks = [os.environ[name] for name in _RANKS if os.environ.get(name, "").isdigit()]
    if ranks:
        record["rank"] = int(ranks[0])
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    except OSError:
        return
    try:
        os.write(fd, ("\n" + json.dumps(record) + "\n").encode("ascii"))
    except OSError:
        pass
    finally:
        os.close(fd)


def _number(value):
    # type: (object) -> float | str
    """Return the number, or why there is none."""
    if isinstance(value, bool) or value is None:
        return "is no number"
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return "is text" if hasattr(value, "upper") else "is a " + type(value).__name__
    if math.isinf(number) or math.isnan(number):
        return "is NaN" if math.isnan(number) else "is infinite"
    return number


def _send(line):
    # type: (str) -> None
    """Write to the pipe, which somebody else makes."""
    waited = 0.0
    while not os.path.exists(_FIFO):  # noqa: PTH110 - Python 2 has no pathlib
        if waited >= _WAIT_S:
            raise FifoNotCreatedInTimeError("no pipe at %s after %g s" % (_FIFO, _WAIT_S))
        time.sleep(_STEP_S)
        waited += _STEP_S
    with open(_FIFO, "a") as pipe:  # noqa: PTH123
        pipe.write(line)
        pipe.flush()
