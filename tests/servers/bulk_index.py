"""HTTP server on loopback with the bulk API of Elasticsearch: keeps documents by index and id, and refuses on order."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class BulkIndex:
    """`status` answers every request where it is not 200; `refused` names indices whose documents are not taken."""

    port: int = 0
    status: int = 200
    refused: dict[str, int] = field(default_factory=dict)
    documents: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    requests: int = 0
    authorizations: list[str] = field(default_factory=list)

    def address(self, path: str = "", *, user: str = "") -> str:
        return f"elasticsearch+http://{user}127.0.0.1:{self.port}{path}"

    def take(self, body: bytes) -> dict[str, Any]:
        """Do what the lines say, and answer as Elasticsearch does."""
        assert body.endswith(b"\n"), "the last line must end too"
        lines = [json.loads(line) for line in body.splitlines()]
        items = [
            self._keep(action["index"], document) for action, document in zip(lines[::2], lines[1::2], strict=True)
        ]
        return {"errors": any("error" in item["index"] for item in items), "items": items}

    def _keep(self, action: dict[str, str], document: dict[str, Any]) -> dict[str, Any]:
        status = self.refused.get(action["_index"], 201)
        said = {**action, "status": status}
        if status != 201:
            return {"index": said | {"error": {"type": "mapper_parsing_exception", "reason": "failed to parse"}}}
        self.documents.setdefault(action["_index"], {})[action["_id"]] = document
        return {"index": said}


@contextmanager
def bulk_index() -> Iterator[BulkIndex]:
    made = BulkIndex()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.requests += 1
            made.authorizations.append(self.headers.get("Authorization", ""))
            is_bulk = self.path == "/_bulk" and self.headers["Content-Type"] == "application/x-ndjson"
            status = made.status if is_bulk else 404
            answer = json.dumps(made.take(body) if status == 200 else {"error": "no"}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        try:
            yield made
        finally:
            server.shutdown()
