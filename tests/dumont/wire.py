"""HTTP and Redis clients of the Dumont worker, as `requests` and redis-py behave."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import redis

_HEADERS = {
    "User-Agent": "python-requests/2.32.5",
    "Accept-Encoding": "gzip, deflate",
    "Accept": "*/*",
    "Connection": "keep-alive",
}


class Orchestrator:
    """`host` is used as it was written: with a slash at its end, every path begins with two."""

    def __init__(self, host: str) -> None:
        self._host = host

    def register(self, body: dict[str, Any]) -> tuple[int, Any]:
        return self._call("POST", "/api/register", body, timeout_s=60)

    def heartbeat(self, worker_id: str, timestamp: float) -> int:
        return self._call("POST", f"/api/workers/{worker_id}/heartbeat", {"timestamp": timestamp}, timeout_s=60)[0]

    def status(self, worker_id: str, status: str) -> int:
        return self._call("PUT", f"/api/workers/{worker_id}/status", {"status": status}, timeout_s=60)[0]

    def job(self, job_id: str) -> tuple[int, Any]:
        return self._call("GET", f"/api/jobs/{job_id}", None, timeout_s=60)

    def _call(self, method: str, path: str, body: Any, *, timeout_s: float) -> tuple[int, Any]:
        there = urlsplit(self._host + path)
        connection = http.client.HTTPConnection(there.hostname or "", there.port or 80, timeout=timeout_s)
        headers = dict(_HEADERS)
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, there.path, content, headers)
            answer = connection.getresponse()
            text = answer.read()
        except http.client.HTTPException as exc:  # a server that dies in the middle of its answer
            raise ConnectionError(str(exc)) from exc
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, None


class Queues:
    """Whatever goes wrong with Redis is taken for `nothing there`, or for `not done`."""

    def __init__(self, host: str, port: int) -> None:
        self._redis = redis.Redis(
            host=host, port=port, db=0, decode_responses=True, socket_connect_timeout=60, socket_timeout=60
        )

    def is_connected(self) -> bool:
        try:
            return bool(self._redis.ping())
        except redis.RedisError:
            return False

    def pop(self, names: list[str]) -> str | None:
        """Return the first job of the first queue that has one."""
        if not self.is_connected():
            return None
        try:
            for name in names:
                found = self._redis.rpop(name)
                if found is not None:
                    return str(found)
        except redis.RedisError:
            return None
        return None

    def push(self, result: str) -> bool:
        if not self.is_connected():
            return False
        try:
            return bool(self._redis.lpush("results", result))
        except redis.RedisError:
            return False
