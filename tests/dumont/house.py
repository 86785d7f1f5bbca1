"""A real `prony server --sark`, over a real Redis or its own lists, in the hands of a test, with its workers."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from dumont.crew import Crew, Hand, crew
from servers.ports import free_port
from servers.redis import redis_server

WITHIN_S = 180.0
MODEL = "http://models.example/tiny.onnx"
# Silent for so long, a worker has lost its job; out of its list for so long without a word, a job is put there again.
LEASE, CLAIM = "6s", "5s"


@dataclass
class House:
    """`kill` and `start` are the server's; its home, its ports and its Redis stay.

    `has_redis`: the lists are in a Redis and not in the server itself."""

    folder: Path
    redis_url: str
    crew: Crew
    port: int
    sark_port: int
    has_redis: bool = True
    process: subprocess.Popen[bytes] | None = None
    devices: int = 0
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.sark_port}"

    @property
    def redis_port(self) -> int:
        return int(self.redis_url.rpartition(":")[2].partition("/")[0])

    # The server

    def start(self) -> None:
        command = [sys.executable, "-m", "prony", "server", "--port", str(self.port), "--no-auth"]
        lists = ["--redis", self.redis_url] if self.has_redis else ["--sark-redis-port", str(self.redis_port)]
        command += ["--lease-ttl", LEASE, "--sark", "--sark-port", str(self.sark_port), *lists]
        command += ["--sark-claim-timeout", CLAIM, "--log-format", "json"]
        environment = os.environ | {"PRONY_HOME": str(self.folder / "home")} | self.extra
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.wait(lambda: self.answers("/api/health"), "the server")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def answers(self, path: str) -> bool:
        try:
            with urlopen(self.url + path, timeout=60) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def said(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")[-4000:]

    # Its workers

    def device(self) -> str:
        """Return the name of a device that no other worker of this house has: workers are known by it."""
        self.devices += 1
        return f"device-{self.devices}"

    def worker(self, fault: str = "", *, device: str = "", mode: str = "recorded", options: Sequence[str] = ()) -> Hand:
        named = ["--device", device or self.device(), "--capability", "CPU (ONNX)"]
        hand = self.crew.start(fault, mode=mode, options=[*named, *options])
        hand.wait_said("Starting job loop")
        return hand

    # What is asked of it

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        text = self.text(method, path, body)
        return json.loads(text)

    def text(self, method: str, path: str, body: Any = None) -> str:
        """Return what is answered; a server that is away is asked again for a while, as a person would."""
        content = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, content, {"Content-Type": "application/json"}, method=method)
        try:
            with urlopen(request, timeout=60) as answer:
                return str(answer.read().decode())
        except HTTPError as exc:
            raise AssertionError(f"{method} {path}: {exc.code} {exc.read().decode()}\n{self.said()}") from exc

    def campaign(self, count: int = 1, *, model: str = MODEL, **job: Any) -> str:
        jobs = [{"compute_unit": "CPU (ONNX)", "num_inference_runs": 3, **job}] * count
        return str(self.ask("POST", "/api/campaigns", {"model_url": model, "jobs": jobs})["campaign_id"])

    def view(self, campaign_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"/api/campaigns/{campaign_id}")
        return found

    def ended(self, campaign_id: str) -> dict[str, Any]:
        """Wait until a campaign has ended; return it."""
        self.wait(lambda: self.view(campaign_id)["status"] != "running", f"the end of {campaign_id}", campaign_id)
        return self.view(campaign_id)

    def rows(self, campaign_id: str) -> list[dict[str, str]]:
        return list(csv.DictReader(StringIO(self.text("GET", f"/api/campaigns/{campaign_id}/results"))))

    def dropped(self) -> dict[str, int]:
        """Return how many reports counted for nothing, by why."""
        found: dict[str, int] = self.ask("GET", "/api/monitoring/stats")["results"]["dropped"]
        return found

    def prony(self, path: str, *, method: str = "GET") -> dict[str, Any]:
        """Ask Prony's own API."""
        request = Request(f"http://127.0.0.1:{self.port}/api/v1/{path}", method=method)
        with urlopen(request, timeout=60) as answer:
            found: dict[str, Any] = json.loads(answer.read())
        return found

    def wait(self, is_so: Callable[[], bool], what: str, campaign_id: str = "") -> None:
        deadline = time.monotonic() + WITHIN_S
        while not is_so():
            if time.monotonic() > deadline:
                state = json.dumps(self.view(campaign_id), indent=1) if campaign_id else ""
                hands = "\n".join(hand.said()[-1500:] for hand in self.crew.hands)
                raise AssertionError(f"waited {WITHIN_S:g} s for {what}\n{state}\n{self.said()}\n{hands}")
            time.sleep(0.05)

    def dismiss(self) -> None:
        """End all workers, and forget everything."""
        for hand in self.crew.hands:
            hand.kill()
        self.crew.hands.clear()


@contextmanager
def house(folder: Path, *, redis_url: str | None = None, has_redis: bool = True) -> Iterator[House]:
    """Have a server with a Redis of its own, or one that is there, or none, for as long as the block runs."""
    with ExitStack() as block:
        if not has_redis:
            redis_url = f"redis://127.0.0.1:{free_port()}/0"
        url = redis_url or block.enter_context(redis_server())
        sark_port = free_port()
        hands = block.enter_context(crew(folder, host=f"http://127.0.0.1:{sark_port}", redis_url=url))
        made = House(folder, url, hands, free_port(), sark_port, has_redis)
        block.callback(made.kill)
        made.start()
        yield made
