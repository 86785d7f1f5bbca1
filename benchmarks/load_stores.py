"""A Redis and a PostgreSQL, started here, in; Prony's throughput and median latency beside redis-benchmark's and
pgbench's on the same server out, and where the difference goes: CPU time of client and server for each request.
"""

from __future__ import annotations

import csv
import re
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import benchmarks.fleet_ground  # noqa: F401 - it says where the tests' servers lie
from benchmarks.load_ground import Bound, Ground, number
from benchmarks.load_tools import LIMIT_S, Prony
from benchmarks.load_tree import FailedError, cpu_s, run
from servers.binaries import AbsentError, find
from servers.postgres import Postgres
from servers.redis import redis_server

_USERS_REDIS, _USERS_POSTGRES = 50, 8
_VALUE, _KEY, _KEYS = 100, 16, 10_000
_HEAD = (
    f"{'':30}{'requests/s':>12}{'p50 ms':>9}{'client CPU us':>15}{'server':>8}{'client busy':>13}{'server':>8}"
    "   rate and p50, as a ratio to the peer's"
)


@dataclass(frozen=True)
class Took:
    """One load on a server; CPU is in microseconds a request, and only of the time in which requests were sent."""

    name: str
    rate: float
    p50_ms: float
    client_us: float
    server_us: float

    def row(self, peer: Took | None = None) -> str:
        """Return a line of the table: a process that is busy all the time is what decides the rate."""
        busy = [f"{us * self.rate / 1e6:.0%}" for us in (self.client_us, self.server_us)]
        ratio = "" if peer is None else f"   {self.rate / peer.rate:.2f}, {self.p50_ms / peer.p50_ms:.2f}"
        return (
            f"{self.name:30}{self.rate:12,.0f}{number(self.p50_ms, 9, 3)}{number(self.client_us, 15)}"
            f"{number(self.server_us, 8)}{busy[0]:>13}{busy[1]:>8}{ratio}"
        )


def redis(ground: Ground) -> list[Bound]:
    """SET and GET of 100 bytes by 50 connections, one and sixteen commands at once, beside redis-benchmark."""
    program = shutil.which("redis-benchmark")
    if program is None:
        return [_absent("Redis", "redis-benchmark is not installed (Debian's package is called redis-tools)")]
    print(_HEAD, flush=True)
    bounds = []
    try:
        with redis_server() as url:
            for operation, depth in (("set", 1), ("get", 1), ("set", 16), ("get", 16)):
                peer = _redis_benchmark(program, url, operation, depth, ground.size.seconds)
                ours = _prony_redis(ground, url, operation, depth)
                bounds.append(_beside(f"Redis {operation}, {depth} at once", ours, peer))
    except (AbsentError, FailedError) as exc:
        return [*bounds, _absent("Redis", str(exc))]
    return bounds


def _redis_benchmark(program: str, url: str, operation: str, depth: int, seconds: float) -> Took:
    place = urlsplit(url)
    words = [program, "-h", str(place.hostname), "-p", str(place.port), "-c", str(_USERS_REDIS), "-t", operation]
    words += ["-d", str(_VALUE), "-r", str(_KEYS), "-P", str(depth), "--csv", "-n"]
    # A short one first, because it takes a number of requests and no time.
    first = _csv(run([*words, "20000"], limit_s=LIMIT_S).output)
    count = max(20_000, round(float(first["rps"]) * seconds))
    with _served(lambda: _redis_cpu_s(url)) as served:
        spent = run([*words, str(count)], limit_s=LIMIT_S)
    said = _csv(spent.output)
    micro = 1e6 / count
    return Took(
        f"redis-benchmark {operation} P{depth}",
        float(said["rps"]),
        float(said["p50_latency_ms"]),
        spent.cpu_s * micro,
        served[0] * micro,
    )


def _csv(output: str) -> Mapping[str, str]:
    lines = [line for line in output.splitlines() if line.startswith('"')]
    if len(lines) < 2:
        raise FailedError(f"redis-benchmark said {output[-200:]!r}")
    return next(iter(csv.DictReader(lines)))


def _redis_cpu_s(url: str) -> float:
    place = urlsplit(url)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=10) as connection:
        connection.sendall(b"INFO cpu\r\n")
        found = dict(re.findall(r"(used_cpu_(?:sys|user)):([\d.]+)", connection.recv(65536).decode()))
    return float(found["used_cpu_sys"]) + float(found["used_cpu_user"])


def _prony_redis(ground: Ground, url: str, operation: str, depth: int) -> Took:
    options = {
        "operation": operation,
        "pipeline": depth,
        "value_size": _VALUE,
        "key_size": _KEY,
        "key_count": _KEYS,
    }
    recipe = _recipe(url, "redis", options, _USERS_REDIS, ground.size.seconds)
    return _prony(ground, f"prony redis {operation} P{depth}", recipe, depth, lambda: _redis_cpu_s(url))


def _recipe(url: str, driver: str, options: Mapping[str, Any], users: int, seconds: float) -> dict[str, Any]:
    workload = {"kind": "service", "endpoint": url, "driver": driver, "options": dict(options)}
    # One process, as the peers have one thread.
    load = {"closed": {"concurrency": users}, "duration": f"{seconds:g}s", "repeats": 1, "clients": {"processes": 1}}
    return {"name": "bench", "workload": workload, "load": load}


def _prony(ground: Ground, name: str, recipe: Mapping[str, Any], items: int, server_cpu_s: Callable[[], float]) -> Took:
    folder = ground.folder / "stores"
    folder.mkdir(exist_ok=True)
    with _served(server_cpu_s) as served:
        told = Prony().run(recipe, folder)
    count = told.about["causes"]["ok"] * items
    if set(told.about["causes"]) != {"ok"}:
        print(f"{name}: {told.about['causes']}", flush=True)
    rate = told.reported["rate.mean"] * items
    client_us = told.about["cpu_shares"][0] / rate * 1e6
    return Took(name, rate, told.reported["e2e.p50"], client_us, served[0] * 1e6 / count)


@contextmanager
def _served(server_cpu_s: Callable[[], float]) -> Iterator[list[float]]:
    """Give a list that holds, after the block, the CPU seconds of the server in it."""
    found: list[float] = []
    before = server_cpu_s()
    yield found
    found.append(server_cpu_s() - before)


def _beside(what: str, ours: Took, peer: Took) -> Bound:
    """Print both; there is no bound on it, but the ratio and where the rest goes."""
    print(peer.row())
    print(ours.row(peer), flush=True)
    client, server = (us * ours.rate / 1e6 for us in (ours.client_us, ours.server_us))
    told = f"{ours.rate / peer.rate:.2f} of the rate, {ours.p50_ms / peer.p50_ms:.2f} of the median latency"
    cost = f"{ours.client_us:.1f} us of client CPU by {peer.client_us:.1f}"
    rest = f"{_decides(client, server)} (client {client:.0%} of a core, server {server:.0%})"
    return Bound(what, None, f"{told}; {cost}; {rest}", is_figure=True)


def _decides(client: float, server: float) -> str:
    """Say where the rest goes: to whoever is busy all the time, or to others on the machine."""
    if max(client, server) > 0.9:
        return "the client's CPU decides" if client > server else "the server's CPU decides"
    return "neither had a core to itself, or they waited for each other"


def _absent(what: str, reason: str) -> Bound:
    print(f"{what} is left out: {reason}", flush=True)
    return Bound(f"{what} beside its own load generator", None, reason)


def postgres(ground: Ground) -> list[Bound]:
    """pgbench's select-only and TPC-B transactions by 8 connections with prepared statements, beside pgbench."""
    try:
        pgbench, server = _pgbench(), Postgres().start()
    except (AbsentError, FailedError) as exc:
        return [_absent("PostgreSQL", str(exc))]
    bounds = []
    try:
        words = {"PGPASSWORD": str(urlsplit(server.url).password)}
        run([*_called(pgbench, server.url), "-i", "-q", "postgres"], limit_s=LIMIT_S, words=words)
        print(_HEAD, flush=True)
        for operation, script in (("select_only", "select-only"), ("tpcb", "tpcb-like")):
            peer = _pgbench_took(ground, pgbench, server, script)
            options = {"operation": operation, "initialise": False}
            recipe = _recipe(server.url, "postgres", options, _USERS_POSTGRES, ground.size.seconds)
            ours = _prony(ground, f"prony postgres {operation}", recipe, 1, lambda: cpu_s(server.pid))
            bounds.append(_beside(f"PostgreSQL {script}", ours, peer))
    except FailedError as exc:
        bounds.append(_absent("PostgreSQL", str(exc)))
    finally:
        server.stop()
    return bounds


def _pgbench() -> str:
    beside = find().folder / "pgbench"
    found = str(beside) if beside.exists() else shutil.which("pgbench")
    if not found:
        raise FailedError("there is no pgbench beside the server, nor on the path")
    return found


def _called(program: str, url: str) -> list[str]:
    place = urlsplit(url)
    return [program, "-h", str(place.hostname), "-p", str(place.port), "-U", str(place.username)]


def _pgbench_took(ground: Ground, program: str, server: Postgres, script: str) -> Took:
    folder = ground.folder / f"pgbench-{script}"
    folder.mkdir()
    command = [*_called(program, server.url), "-c", str(_USERS_POSTGRES), "-j", "1", "-M", "prepared", "-n"]
    command += ["-T", str(max(1, round(ground.size.seconds))), "-b", script, "-l", "--sampling-rate=0.1", "postgres"]
    words = {"PGPASSWORD": str(urlsplit(server.url).password)}
    with _served(lambda: cpu_s(server.pid)) as served:
        spent = run(command, limit_s=LIMIT_S, words=words, cwd=folder)
    rate = re.search(r"tps = ([\d.]+) \(without", spent.output)
    count = re.search(r"actually processed: (\d+)", spent.output)
    if rate is None or count is None:
        raise FailedError(f"pgbench said {spent.output[-200:]!r}")
    micro = 1e6 / int(count[1])
    p50_ms = _logged_p50_ms(folder)
    return Took(f"pgbench {script}", float(rate[1]), p50_ms, spent.cpu_s * micro, served[0] * micro)


def _logged_p50_ms(folder: Path) -> float:
    """Return the median of pgbench's log, which has microseconds in its third column; it reports only a mean."""
    logs = [path.read_text() for path in folder.glob("pgbench_log*")]
    taken = [int(line.split()[2]) for log in logs for line in log.splitlines()]
    if not taken:
        raise FailedError("pgbench logged nothing")
    return median(taken) / 1e3
