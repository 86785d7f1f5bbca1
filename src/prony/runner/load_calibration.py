"""The load generator measured by itself on this machine, against a server whose timing is known; figures out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from prony.errors import MeasurementError
from prony.load.endpoint import parse_endpoint
from prony.load.generator import LoadPlan, generate
from prony.load.http import request_bytes
from prony.load.mock.start import Mock, MockOptions, serve_mock
from prony.load.outcome import LoadOutcome
from prony.load.schedule import plan
from prony.model.estimate import Estimate
from prony.model.load import Closed, Load, Open
from prony.ports import plugins
from prony.ports.driver import Cause, Driver, Keeps, Prepared, Request
from prony.runner.calibration import estimate

_WIRE = "prony.load.http:HttpWire"
_LINES, _STREAMS, _TOKENS = 64, 32, 32
_LASTING: dict[str, Any] = {"duration": "1.5s"}
_TRUTH = MockOptions(ttft_ns=50_000_000, itl_ns=10_000_000, tokens=_TOKENS)


def calibrate_load(
    scratch: Path, *, repeats: int = 6, progress: Callable[[int, int], None] = lambda *_: None
) -> dict[str, Estimate]:
    """Return how fast and how exactly one client process sends and reads here."""
    found: dict[str, list[float]] = {}
    with serve_mock(_TRUTH) as mock:
        for index in range(repeats):
            for name, value in _once(mock, scratch / str(index)).items():
                found.setdefault(name, []).append(value)
            progress(index + 1, repeats)
    said = f"median of {repeats} runs of one client process against a server of known timing"
    return {name: estimate(values, _UNITS[name], said) for name, values in found.items()}


_UNITS = {
    "load_rate_per_s": "1/s",
    "load_request_cpu_us": "us",
    "load_sent_late_ms": "ms",
    "load_ttft_error_ms": "ms",
    "load_itl_error_ms": "ms",
}


def _once(mock: Mock, scratch: Path) -> dict[str, float]:
    fast = _send_load(mock, scratch / "fast", Load(closed=Closed(concurrency=_LINES), **_LASTING))
    seconds = (fast.end_ns - fast.begin_ns) / 1e9
    rate = len(fast) / seconds
    half = Open(rate=rate / 2, arrivals="constant")
    paced = _send_load(mock, scratch / "paced", Load(open=half, **_LASTING))
    late_ns = paced.records["sent_ns"] - paced.records["due_ns"]
    return {
        "load_rate_per_s": rate,
        "load_request_cpu_us": fast.clients[0].cpu_s / len(fast) * 1e6,
        "load_sent_late_ms": float(np.quantile(late_ns, 0.99)) / 1e6,
    } | _timing(mock, scratch / "timing")


def _timing(mock: Mock, scratch: Path) -> dict[str, float]:
    """Return how far what is reported of streams lies from what the server really wrote."""
    mock.forget()
    load = Load(closed=Closed(concurrency=_STREAMS), requests=4 * _STREAMS)
    outcome = _send_load(mock, scratch, load, streams=True)
    driver: Driver = plugins.load_plugin(plugins.DRIVERS, "openai-chat")()
    firsts, gaps = [], []
    for row, reply in outcome.replies():
        digest = driver.digest(Request(b""), reply)
        if digest.token_ns is not None and digest.token_ns.size:
            firsts.append(int(digest.token_ns[0] - outcome.records["sent_ns"][row]))
            gaps.append(np.diff(digest.token_ns))
    if not firsts:
        raise MeasurementError(
            "the calibration could not read any stream", hint="check whether the machine is overloaded"
        )
    truth = mock.truth()
    first_ms, gap_ms = float(np.median(firsts)) / 1e6, float(np.quantile(np.concatenate(gaps), 0.99)) / 1e6
    return {
        "load_ttft_error_ms": abs(first_ms - truth["ttft_ms"]["p50"]),
        "load_itl_error_ms": abs(gap_ms - truth["itl_ms"]["p99"]),
    }


def _send_load(mock: Mock, scratch: Path, load: Load, *, streams: bool = False) -> LoadOutcome:
    """Send one load from one process; every request must succeed."""
    scratch.mkdir(parents=True)
    endpoint = parse_endpoint(mock.url)
    if streams:
        body = json.dumps(_build_request()).encode()
        content = request_bytes("POST", "/v1/chat/completions", endpoint, {"Content-Type": "application/json"}, body)
    else:
        content = request_bytes("GET", "/calibration", endpoint, {}, b"")
    keeps = Keeps.REPLY if streams else Keeps.NOTHING
    prepared = Prepared(requests=[Request(content)], wire=_WIRE, keeps=keeps)
    outcome = generate(LoadPlan(prepared, endpoint, plan(load, base=scratch), load, scratch, processes=1))
    bad = int(np.count_nonzero(outcome.records["cause"] != Cause.OK))
    if bad or not len(outcome):
        raise MeasurementError(
            f"{bad} of {len(outcome)} requests of the calibration failed", hint="run it again on a quiet machine"
        )
    return outcome


def _build_request() -> dict[str, Any]:
    message = {"role": "user", "content": "how fast is this?"}
    return {"model": "mock", "messages": [message], "max_tokens": _TOKENS, "stream": True}
