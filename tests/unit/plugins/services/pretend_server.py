"""A server that answers as one without a package is documented to: `pretend_server.py KIND WORDS...`.

It finds its port where the real one would: in its environment or its command line. Standard library only.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STORED: dict[str, bytes] = {}
LOADED: list[str] = []


def qdrant(method: str, path: str, _: bytes) -> tuple[int, object]:
    app = {"name": "qdrant", "version": "1.15.0", "system": {"cores": 2, "cpu_flags": "sse"}}
    return 200, {
        "/": {"title": "qdrant - vector search engine", "version": "1.15.0", "commit": "abc"},
        "/readyz": "all shards are ready",
        "/telemetry": {"result": {"id": "x", "app": app, "collections": {}}},
    }[path]


def minio(method: str, path: str, body: bytes) -> tuple[int, object]:
    if path == "/minio/health/ready":
        return 200, b""
    if path.startswith("/minio/v2/metrics"):
        lines = (
            'minio_software_commit_info{commit="abc",server="x"} 1',
            'minio_software_version_info{server="x",version="2025-04-22T22:12:26Z"} 1',
        )
        return 200, "\n".join(lines).encode()
    if (method, path) == ("GET", "/"):
        return 200, b"".join(f"<Name>{one[1:]}</Name>".encode() for one in STORED if one.count("/") == 1)
    if method == "GET":
        return (200, STORED[path]) if path in STORED else (404, b"")
    if method == "DELETE":
        return 204, STORED.pop(path, b"") and b""
    STORED[path] = body
    return 200, b""


def ollama(method: str, path: str, body: bytes) -> tuple[int, object]:
    details = {"parameter_size": "4.3B", "quantization_level": "Q4_K_M"}
    if path == "/api/generate":
        LOADED.append(json.loads(body)["model"])
        return 200, {"done": True, "done_reason": "load"}
    models = [{"name": "tiny:latest", "model": "tiny:latest", "digest": "d", "details": details, "size_vram": 0}]
    return 200, {
        "/api/version": {"version": "0.12.6"},
        "/api/tags": {"models": models},
        "/api/ps": {"models": models if LOADED else []},
    }[path]


def vllm(method: str, path: str, _: bytes) -> tuple[int, object]:
    name = sys.argv[sys.argv.index("--served-model-name") + 1] if "--served-model-name" in sys.argv else sys.argv[3]
    model = {"id": name, "object": "model", "root": sys.argv[3], "max_model_len": 512}
    return 200, {"/health": b"", "/version": {"version": "0.32.0"}, "/v1/models": {"data": [model]}}[path]


KINDS = {"qdrant": qdrant, "minio": minio, "ollama": ollama, "vllm": vllm}


def place(kind: str) -> tuple[str, int]:
    """Return where the real one would listen."""
    if kind == "qdrant":
        return os.environ["QDRANT__SERVICE__HOST"], int(os.environ["QDRANT__SERVICE__HTTP_PORT"])
    words = {"minio": "--address", "vllm": "--port"}
    given = os.environ["OLLAMA_HOST"] if kind == "ollama" else sys.argv[sys.argv.index(words[kind]) + 1]
    host, _, port = given.rpartition(":")
    return host or "127.0.0.1", int(port)


class Handler(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        status, answer = KINDS[sys.argv[1]](self.command, path, body)
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(place(sys.argv[1]), Handler).serve_forever()
