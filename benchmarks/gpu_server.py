"""Serve a model of known limits from a GPU, for sweeps whose bottleneck is known.

    python benchmarks/gpu_server.py --port PORT --mode compute|memory|queue|client

`compute` multiplies large batches (the tensor cores are the limit), `memory` single vectors with weights far larger
than the cache (the memory's bandwidth is), `queue` does one request at a time and mostly sleeps (its own setting is),
and `client` computes little and answers with many bytes (a single client that reads them is).
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_WIDTH = 8192
# By mode: rows of the input, weights of 8192 x 8192 in bf16, and how often one request goes through all of them.
_SIZES = {"compute": (4096, 4, 2), "memory": (1, 16, 8), "queue": (1, 1, 1), "client": (1, 1, 1)}
_SLEEP_S = 0.01
_LARGE_ANSWER = bytes(8 * 2**20)


class Work:
    """Runs one request at a time on the card; counts those that wait for their turn."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._run = run
        self._turn = threading.Lock()
        self._count = threading.Lock()
        self.waiting = 0

    def serve(self) -> None:
        self._add(1)
        with self._turn:
            self._add(-1)
            self._run()

    def _add(self, change: int) -> None:
        with self._count:
            self.waiting += change


def make_run(torch: Any, mode: str, device: str, width: int) -> Callable[[], None]:
    """Return what one request does."""
    rows, layers, rounds = _SIZES[mode]
    torch.manual_seed(7)
    kind = torch.bfloat16
    weights = [(torch.randn(width, width, device=device) / width**0.5).to(kind) for _ in range(layers)]
    inputs = torch.randn(rows, width, device=device).to(kind)

    def run() -> None:
        found = inputs
        with torch.inference_mode():
            for weight in rounds * weights:
                found = found @ weight
        if device != "cpu":
            torch.cuda.synchronize()
        if mode == "queue":
            time.sleep(_SLEEP_S)

    return run


class Handler(BaseHTTPRequestHandler):
    """Answers `/` with what the model did, and `/metrics` with how many requests wait."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    work: Work
    answer = b"done\n"

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self._answer(f"requests_waiting {self.work.waiting}\n".encode())
        elif self.path == "/ready":
            self._answer(b"yes\n")
        else:
            self.work.serve()
            self._answer(self.answer)

    do_POST = do_GET  # noqa: N815

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        del format, args


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main() -> None:
    """Load the model, run it once and serve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mode", choices=sorted(_SIZES), required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--width", type=int, default=_WIDTH)
    options = parser.parse_args()
    import torch

    run = make_run(torch, options.mode, options.device, options.width)
    for _ in range(3):
        run()
    Handler.work = Work(run)
    if options.mode == "client":
        Handler.answer = _LARGE_ANSWER
    Server(("127.0.0.1", options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
