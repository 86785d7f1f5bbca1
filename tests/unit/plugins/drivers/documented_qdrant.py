"""A server that answers as Qdrant's HTTP API is documented to, from vectors that it really keeps."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from prony.plugins.drivers.vectors.driver import Metric, nearness
from prony.ports.driver import Endpoint

_METRICS: dict[str, Metric] = {"Euclid": "l2", "Cosine": "cosine", "Dot": "dot"}


class Qdrant:
    """What the server holds. `statuses` are told of a collection one after the other; the last stays."""

    def __init__(self) -> None:
        self.version = "1.12.4"
        self.key = ""
        self.statuses = ["yellow", "green"]
        self.collections: dict[str, dict[str, Any]] = {}
        self.vectors: dict[str, dict[int, list[float]]] = {}
        self.asked: list[str] = []
        self.queries: list[Any] = []

    def answer(self, method: str, path: str, document: Any) -> tuple[int, Any]:
        """Return status and document; all but the first page wrap their result."""
        self.asked.append(f"{method} {path}")
        words = urlsplit(path).path.strip("/").split("/")
        if words == [""]:
            return 200, {"title": "qdrant - vector search engine", "version": self.version}
        result = self._result(method, words[1], words[2:], document)
        status = "ok" if result is not None else {"error": f"Not found: Collection `{words[1]}` doesn't exist!"}
        return (404 if result is None else 200), {"result": result, "status": status, "time": 0.0001}

    def _result(self, method: str, name: str, rest: list[str], document: Any) -> Any:
        if method == "PUT" and not rest:
            self.collections[name], self.vectors[name] = document, {}
            return True
        if name not in self.collections:
            return None
        if rest:
            return self._points(name, rest, document)
        if method == "DELETE":
            del self.collections[name]
            return True
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return {"status": status, "points_count": len(self.vectors[name])}

    def _points(self, name: str, rest: list[str], document: Any) -> Any:
        if rest == ["points", "query"]:
            return {"points": self._nearest(name, document["query"], document)}
        if rest == ["points", "search"]:
            return self._nearest(name, document["vector"], document)
        batch = document["batch"]
        self.vectors[name].update(zip(batch["ids"], batch["vectors"], strict=True))
        return {"operation_id": 0, "status": "completed"}

    def _nearest(self, name: str, vector: list[float], document: Any) -> list[dict[str, Any]]:
        self.queries.append(document)
        known = self.vectors[name]
        metric = _METRICS[self.collections[name]["vectors"]["distance"]]
        near = nearness(np.array([vector]), np.array(list(known.values())), metric)[0]
        numbers = list(known)
        order = np.argsort(-near)[: document["limit"]]
        return [{"id": numbers[at], "version": 0, "score": float(near[at])} for at in order]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        store: Qdrant = self.server.store  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if store.key and self.headers.get("api-key") != store.key:
            status, told = 401, b"Must provide an API key or an Authorization bearer token"
        else:
            status, document = store.answer(self.command, self.path, json.loads(body or b"null"))
            told = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def documented_qdrant() -> Iterator[tuple[Qdrant, Endpoint]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    store = Qdrant()
    server.store = store  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield store, Endpoint(host="127.0.0.1", port=server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
