"""Prometheus pages as servers write them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from prony.runner.load_telemetry import MetricsPage, parse_metrics

PAGE = """\
# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a b"} 3.0
vllm:prompt_tokens_total{engine="0"} 1.5e+03 1700000000000
vllm:ttft_bucket{le="0.5"} 7
vllm:ttft_sum 12.5
up 1
broken line here
nothing NaN
endless +Inf
"""


def test_numbers_are_read_with_their_labels_and_without_buckets() -> None:
    assert parse_metrics(PAGE) == {
        'vllm:num_requests_running{engine="0",model_name="a b"}': 3.0,
        'vllm:prompt_tokens_total{engine="0"}': 1500.0,
        "vllm:ttft_sum": 12.5,
        "up": 1.0,
    }


def test_what_is_no_page_has_no_numbers() -> None:
    assert parse_metrics("<html>\x00</html>") == {}


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = PAGE.encode() if self.path == "/metrics" else b""
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    serving = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    yield serving
    serving.shutdown()
    serving.server_close()


def test_a_page_is_read_once_a_second(server: HTTPServer) -> None:
    page = MetricsPage(f"http://127.0.0.1:{server.server_port}/metrics")
    first = page.read()
    assert first is not None
    assert first["up"] == 1.0
    assert page.read() is None
    assert page.failures == 0


@pytest.mark.parametrize("path", ["/other", ":1/x"])
def test_a_page_that_does_not_come_is_counted_and_stops_nothing(server: HTTPServer, path: str) -> None:
    page = MetricsPage(
        f"http://127.0.0.1:{server.server_port}{path}" if path != ":1/x" else "http://127.0.0.1:1/metrics"
    )
    assert page.read() is None
    assert page.failures == 1
    assert page.reason
