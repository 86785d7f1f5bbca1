"""Loads against servers whose truth is known: counts and times of the mock, and a queue with a known knee."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from benchmarks.product import Product
from prony.load.mock.start import MockOptions, serve_mock

STREAMS = (1, 8, 64, 512)
_TOKENS = 32
_MOCK = MockOptions(ttft_ns=50_000_000, itl_ns=10_000_000, tokens=_TOKENS, errors=0.03)
# Of a run that nothing disturbed: how far a reported median may lie from the truth, in milliseconds.
_MOST_MS = 0.2
# Enough for a p99, at a pace that has them within a minute; a pause in each stream is one gap of fifteen.
_TAIL_MOCK = MockOptions(ttft_ns=20_000_000, itl_ns=2_000_000, tokens=16)
_TAIL_STREAMS, _TAIL_REQUESTS, _MOST_TAIL_MS = (1, 8, 64), 800, 2.0
_UNDISTURBED = "undisturbed"
# A queue with so many places, each of which takes so long: more clients than places bring nothing.
_PLACES, _EACH_S = 4, 0.02
_CLIENTS = (1, 2, 3, 4, 6, 8, 12, 16)


def print_mock(product: Product) -> list[str]:
    """Print what was reported beside the mock's truth; return what missed its bound."""
    print("\nmock: reported / true, first token after 50 ms, gaps of 10 ms, 3 % of the requests fail")
    print(f"{'streams':>7}{'requests':>16}{'failed':>12}{'TTFT p50':>20}{'ITL p50':>20}  verdict")
    missed = []
    for streams in STREAMS:
        with serve_mock(_MOCK) as mock:
            told = product.run(_recipe(mock.url, streams))["jobs"][0]
            truth = mock.truth()
        failed, sent = told["counts"]["error_rate.mean"]
        times = [(told["estimates"][f"{name}.p50"]["value"], truth[name]["p50"]) for name in ("ttft_ms", "itl_ms")]
        doubts = _list_doubts(told)
        cells = "".join(f"{f'{ours:.3f} / {true:.3f}':>20}" for ours, true in times)
        faults = _count_faults(truth)
        print(
            f"{streams:>7}{f'{sent} / {_count_requests(truth)}':>16}{f'{failed} / {faults}':>12}{cells}  {doubts}",
            flush=True,
        )
        if (sent, failed) != (_count_requests(truth), faults):
            missed.append(f"counts at {streams} streams")
        if doubts == _UNDISTURBED and any(abs(ours - true) > _MOST_MS for ours, true in times):
            missed.append(f"times at {streams} streams are undisturbed and wrong")
    return missed


def _list_doubts(told: Mapping[str, Any]) -> str:
    """Return why a number of these may be wrong; that there is one run only, which has one truth, is no reason."""
    reasons = told["verdict"]["reasons"]
    doubtful = [one["code"] for one in reasons if one["grade"] in ("suspect", "void") and one["code"] != "one_run"]
    return ", ".join(doubtful) or _UNDISTURBED


def print_tails(product: Product) -> list[str]:
    """Print the 99th percentiles that were reported beside the mock's; return what missed its bound."""
    print(
        f"\nmock: p99 reported / true in ms, {_TAIL_REQUESTS} or more requests; undisturbed within {_MOST_TAIL_MS:g} ms"
    )
    print(f"{'pause':>7}{'streams':>9}{'TTFT p99':>22}{'ITL p99':>22}  verdict")
    missed, undisturbed = [], 0
    for stall_ms in (0, 100):
        for streams in _TAIL_STREAMS:
            with serve_mock(replace(_TAIL_MOCK, stall_ns=stall_ms * 1_000_000)) as mock:
                told = product.run(_tail_recipe(mock.url, streams, stall_ms))["jobs"][0]
                truth = mock.truth()
            times = [(told["estimates"][f"{name}.p99"]["value"], truth[name]["p99"]) for name in ("ttft_ms", "itl_ms")]
            doubts = _list_doubts(told)
            is_undisturbed = doubts == _UNDISTURBED
            undisturbed += is_undisturbed
            cells = "".join(f"{f'{ours:.3f} / {true:.3f}':>22}" for ours, true in times)
            print(f"{stall_ms:>4} ms{streams:>9}{cells}  {doubts}", flush=True)
            if is_undisturbed and any(abs(ours - true) > _MOST_TAIL_MS for ours, true in times):
                missed.append(f"p99 at {streams} streams with pauses of {stall_ms} ms is undisturbed and wrong")
    print(f"{undisturbed} of {2 * len(_TAIL_STREAMS)} are undisturbed and held to the bound")
    return missed


def _tail_recipe(url: str, streams: int, stall_ms: int) -> dict[str, Any]:
    recipe = _recipe(url, streams)
    prompts = {"input_words": 20, "output_tokens": _TAIL_MOCK.tokens}
    return {
        "name": f"tail-{stall_ms}-{streams}",
        "workload": recipe["workload"] | {"prompts": prompts},
        "load": recipe["load"] | {"requests": max(_TAIL_REQUESTS, 64 * streams)},
    }


def _recipe(url: str, streams: int) -> dict[str, Any]:
    return {
        "name": f"mock-{streams}",
        "workload": {
            "kind": "service", "endpoint": url, "driver": "openai-chat", "options": {"model": "mock"},
            "prompts": {"input_words": 20, "output_tokens": _TOKENS},
        },
        "load": {
            "closed": {"concurrency": streams}, "requests": max(100, 4 * streams), "repeats": 1, "warmup": "none",
            "errors": "any",
        },
    }  # fmt: skip


def _count_requests(truth: Mapping[str, Any]) -> int:
    return int(truth["requests"])


def _count_faults(truth: Mapping[str, Any]) -> int:
    return int(sum(truth["errors_sent"].values()))


def print_knee(product: Product) -> list[str]:
    """Print where a sweep over a queue of known places says that more clients bring nothing."""
    with _queue() as url:
        told = product.run({
            "name": "queue",
            "workload": {"kind": "service", "endpoint": url, "driver": "http"},
            "load": {"closed": {"concurrency": 1}, "duration": "2s", "repeats": 3},
            "matrix": {"load.closed.concurrency": list(_CLIENTS)},
        })  # fmt: skip
    (curve,) = product.ask("sweep-report", told["experiment"]["id"])["curves"]
    knee, most = curve["knee"], max(level["throughput"]["value"] for level in curve["levels"] if level["throughput"])
    print(f"\nsweep: a queue of {_PLACES} places of {1000 * _EACH_S:.0f} ms: {_PLACES / _EACH_S:.0f} a second at most")
    print(f"most throughput {most:.1f} a second; knee {knee['state']}: {knee['text']}", flush=True)
    found = knee["estimate"]
    if found is None or not found["low"] <= _PLACES <= found["high"]:
        return [f"the knee of {_PLACES} clients: {knee['text']}"]
    return []


@contextmanager
def _queue() -> Iterator[str]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/"
    finally:
        process.terminate()
        process.join()


def _serve(address: Any) -> None:
    asyncio.run(_serve_forever(address))


async def _serve_forever(address: Any) -> None:
    places = asyncio.Semaphore(_PLACES)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                async with places:
                    await asyncio.sleep(_EACH_S)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()
