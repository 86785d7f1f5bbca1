"""Make a worker's HTTP calls to a SARK orchestrator, with this device described as the orchestrator wants it.

A call ends as those of a `ServerLink` do: with an answer, `Refused`, or a TransportError when nobody answered.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from prony import __version__
from prony.agent.server_client import Refused
from prony.compat.sark.nouns import Registration, WorkerDevice, WorkerStatus
from prony.errors import InputError, NotFoundError, PronyError, TransportError
from prony.model.agent import Capabilities
from prony.model.device import Device, EngineReport
from prony.model.loopback import is_loopback_url

_ANSWER_S = 10.0
_LONGEST_QUOTE = 200
_HINT = "is a SARK orchestrator running there, and can it be reached? `prony agent test --sark URL` checks it"


class OrchestratorClient:
    """`base` is the address without `/api`. Close it when done."""

    def __init__(self, base: str) -> None:
        self.base = base
        self._http = httpx.AsyncClient(
            headers={"User-Agent": f"prony-agent/{__version__}"},
            verify=not base.startswith("http:"),
            trust_env=not is_loopback_url(base),
            timeout=httpx.Timeout(_ANSWER_S, connect=5.0),
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def register(self, registration: Registration) -> str:
        """Introduce a worker; return its id."""
        answer = await self._ask("POST", "register", body=registration.model_dump(mode="json"))
        worker_id = answer.get("worker_id")
        if not isinstance(worker_id, str) or not worker_id:
            raise TransportError(f"{self.base} registered this device without giving an id", hint=_HINT)
        return worker_id

    async def heartbeat(self, worker_id: str) -> None:
        await self._ask("POST", "workers", worker_id, "heartbeat", body={"timestamp": time.time()})

    async def say(self, worker_id: str, status: WorkerStatus) -> None:
        await self._ask("PUT", "workers", worker_id, "status", body={"status": status.value})

    async def job(self, job_id: str) -> dict[str, Any]:
        """Return a job as the orchestrator has it."""
        found = (await self._ask("GET", "jobs", job_id)).get("job")
        if not isinstance(found, dict):
            raise TransportError(f"the answer of {self.base} does not have job {job_id}", hint=_HINT)
        return found

    async def health(self) -> httpx.Response:
        """Return the answer as it came."""
        return await self._send("GET", ("health",))

    # Inside

    async def _ask(self, method: str, *parts: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        response = await self._send(method, parts, body=body)
        if not response.is_success:
            raise Refused(response.status_code, self._error(response))
        try:
            answer = response.json()
        except ValueError as exc:
            raise TransportError(f"{self.base} sent an answer that is not JSON", hint=_HINT) from exc
        if not isinstance(answer, dict):
            raise TransportError(f"{self.base} sent an answer that is not a JSON object", hint=_HINT)
        return answer

    async def _send(self, method: str, parts: tuple[str, ...], *, body: dict[str, Any] | None = None) -> httpx.Response:
        url = "/".join([self.base, "api", *(quote(part, safe="") for part in parts)])
        try:
            return await self._http.request(method, url, json=body)
        except httpx.TimeoutException as exc:
            raise TransportError(f"the orchestrator at {self.base} does not answer in time", hint=_HINT) from exc
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as exc:
            reason = str(exc) or type(exc).__name__
            raise TransportError(f"cannot reach the orchestrator at {self.base}: {reason}", hint=_HINT) from exc

    def _error(self, response: httpx.Response) -> PronyError:
        """Return what a refusal says; an orchestrator says it as `{"error": text}`."""
        try:
            said = str(response.json()["error"])
        except (ValueError, KeyError, TypeError):
            said = response.text[:_LONGEST_QUOTE] or response.reason_phrase
        told = f"{self.base} answered {response.status_code}: {' '.join(said.split())}"
        if response.status_code == HTTPStatus.NOT_FOUND:
            return NotFoundError(told, hint=_HINT)
        return InputError(told, hint=_HINT) if response.is_client_error else TransportError(told, hint=_HINT)


def registration_of(offered: Capabilities, device: Device, *, udid: str, ip_address: str) -> Registration:
    return Registration(
        device_name=device.name,
        ip_address=ip_address,
        capabilities=tuple(capabilities_of(offered.engines)),
        device_info=worker_device(device, udid).model_dump(),
    )


def capabilities_of(engines: Iterable[EngineReport]) -> dict[str, tuple[str, str]]:
    """Return SARK's words for what works here, each with the engine and the unit that it means on this device."""
    found: dict[str, tuple[str, str]] = {}
    for report in engines:
        for unit in report.units:
            if report.state == "ready" and unit.seed_name:
                found.setdefault(unit.seed_name, (unit.engine, unit.unit))
    return found


def worker_device(device: Device, udid: str | None = None) -> WorkerDevice:
    """Describe a device in SARK's fields; what Prony does not know, as the year it was built, stays None."""
    hardware, software = device.hardware, device.software
    gpu = hardware.gpus[0] if hardware.gpus else None
    memory_mib = hardware.memory_installed_mib or hardware.memory_mib
    return WorkerDevice(
        device_name=device.name,
        soc=hardware.cpu.model,
        ram=str(round(memory_mib / 1024)) if memory_mib else None,
        discrete_gpu=gpu.name if gpu else None,
        v_ram=str(round(gpu.memory_mib / 1024)) if gpu and gpu.memory_mib else None,
        device_os=software.os.capitalize(),
        device_os_version=software.os_version or software.kernel,
        udid=udid,
    )


def address_towards(url: str) -> str:
    """Return this device's own address on the way to a server; asks the routing table, sends nothing."""
    there = urlsplit(url)
    family = socket.AF_INET6 if ":" in (there.hostname or "") else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((there.hostname or "127.0.0.1", there.port or 80))
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"
