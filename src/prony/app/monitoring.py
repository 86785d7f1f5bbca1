"""Start a Prometheus that reads a server and its agents, with the rules that come with Prony."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from prony.errors import CapacityError, InputError, StoreError

CONFIG = "prometheus.yml"
RULES = "rules.yml"
TOKEN = "prony-token"
INSTALL = "apt-get install prometheus (Debian, Ubuntu), brew install prometheus (macOS), or prometheus.io/download"
_LOG = "prometheus.log"
_READY_S = 60.0
_LOOK_S = 0.1
_END_S = 20.0
_LAST_LINES = 5


@dataclass(frozen=True)
class MonitorPlan:
    """What is to be started; `folder` holds the configuration, the token, the log and Prometheus' own data."""

    program: str
    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def command(self) -> list[str]:
        return [
            self.program, f"--config.file={self.folder / CONFIG}", f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]  # fmt: skip


def find_prometheus(named: str = "") -> str:
    """Return the program.

    Raises:
        CapacityError: It is not installed.
    """
    found = shutil.which(named or "prometheus")
    if found is None:
        what = f"{named} is not a program" if named else "Prometheus is not installed"
        raise CapacityError(what, hint=INSTALL, code="no_prometheus")
    return found


def dashboards_folder() -> Path:
    """Return where the Grafana dashboards lie that come with Prony."""
    return Path(str(files("prony.app") / "dashboards"))


def write_files(folder: Path, server: str, token: str) -> None:
    """Write the shipped configuration for one server, the rules, and a token that only its owner can read."""
    import yaml

    shipped = files("prony.app") / "prometheus"
    config = point_at(yaml.safe_load((shipped / CONFIG).read_text(encoding="utf-8")), server)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CONFIG).write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        (folder / RULES).write_text((shipped / RULES).read_text(encoding="utf-8"), encoding="utf-8")
        (folder / TOKEN).unlink(missing_ok=True)
        with os.fdopen(os.open(folder / TOKEN, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(token)
    except OSError as exc:
        hint = "check its permissions and the free space"
        raise StoreError(f"cannot write to {folder}: {exc.strerror}", hint=hint) from exc


def read_token(folder: Path) -> str | None:
    """Return the token that an earlier start left, if it did."""
    try:
        return (folder / TOKEN).read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise StoreError(f"cannot read {folder / TOKEN}: {exc.strerror}", hint="check its permissions") from exc


def point_at(config: dict[str, Any], server: str) -> dict[str, Any]:
    """Return the shipped configuration with this server in place of the one on this machine's usual port."""
    at = urlsplit(server)
    if at.scheme not in ("http", "https") or not at.hostname:
        raise InputError(f"{server} is not the address of a server", hint="as in http://127.0.0.1:7337")
    reading, agents = config["scrape_configs"]
    path = at.path.rstrip("/")
    found = {
        **reading, "scheme": at.scheme, "metrics_path": f"{path}/metrics",
        "static_configs": [{"targets": [at.netloc]}],
    }  # fmt: skip
    discovery = {**agents["http_sd_configs"][0], "url": f"{at.scheme}://{at.netloc}{path}/metrics/targets"}
    return {**config, "scrape_configs": [found, {**agents, "http_sd_configs": [discovery]}]}


@contextmanager
def running_prometheus(plan: MonitorPlan, is_ready: Callable[[str], bool]) -> Iterator[subprocess.Popen[bytes]]:
    """Run Prometheus while the block runs, which begins when it answers.

    Raises:
        CapacityError: It ended at once or does not answer; the message has its last lines.
    """
    log = plan.folder / _LOG
    with log.open("wb") as output:
        process = subprocess.Popen(plan.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        _wait_ready(plan, process, is_ready, log)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_ready(
    plan: MonitorPlan, process: subprocess.Popen[bytes], is_ready: Callable[[str], bool], log: Path
) -> None:
    until = time.monotonic() + _READY_S
    while process.poll() is None and time.monotonic() < until:
        if is_ready(plan.url):
            return
        time.sleep(_LOOK_S)
    what = "does not answer" if process.poll() is None else f"ended with exit code {process.returncode}"
    last = " | ".join(log.read_text(errors="replace").splitlines()[-_LAST_LINES:])
    raise CapacityError(
        f"Prometheus {what}: {last}",
        hint=f"check that port {plan.port} is free; its output is in {log}",
        code="prometheus_failed",
    )


def is_prometheus_ready(url: str) -> bool:
    """Does a Prometheus at this address say that it is ready?"""
    import httpx

    try:
        return httpx.get(f"{url}/-/ready", timeout=2.0, trust_env=False).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
