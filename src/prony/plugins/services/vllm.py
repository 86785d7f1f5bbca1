"""vLLM: `vllm serve`; ready when it is healthy and lists its model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from prony.plugins.services import launch
from prony.plugins.services.asking import failure_at, find_json, pick_values
from prony.plugins.services.launch import (
    LaunchedServer,
    ServiceOptions,
    installation_of,
    lacking,
    listen_address,
    start_of,
)
from prony.ports.driver import Endpoint
from prony.ports.service import Installation, ServiceSite, Start
from prony.runner.services.site import LOOPBACK

PROGRAMS = ("vllm",)
HOW = "pip install vllm in a separate environment, and set settings.python: ENVIRONMENT/bin/python"


class VllmOptions(ServiceOptions):
    model: str = Field(
        min_length=1, description="a folder, or a name on Hugging Face", json_schema_extra={"path": "there"}
    )
    model_name: str | None = Field(
        default=None, min_length=1, description="the model's name in requests; default: the model"
    )
    python: str | None = Field(
        default=None,
        min_length=1,
        description="the Python interpreter of its environment",
        json_schema_extra={"path": True, "starts": "program"},
    )


class Vllm:
    """vLLM's OpenAI-compatible server, with one model."""

    name: ClassVar[str] = "vllm"
    driver: ClassVar[str] = "openai-chat"
    Options: ClassVar[type[VllmOptions]] = VllmOptions

    def available(self, options: VllmOptions) -> str | None:
        return lacking(PROGRAMS, options.model_copy(update={"program": _program(options)}), HOW)

    def installation(self) -> Installation | None:
        return installation_of(PROGRAMS, package="vllm")

    def start(self, site: ServiceSite) -> Start:
        options: VllmOptions = site.options
        folder = (site.base / Path(options.model).expanduser()).absolute()
        model = str(folder) if folder.exists() else options.model
        named = ["--served-model-name", options.model_name] if options.model_name else []
        environment = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
        server = LaunchedServer(
            PROGRAMS,
            ["serve", model, "--host", listen_address(site), "--port", str(site.port), *named],
            Endpoint(host=LOOPBACK, port=site.port),
            environment | ({"HF_HUB_OFFLINE": "1"} if folder.exists() else {}),
            metrics_path="/metrics",
            grace_s=20.0,
            shared=[folder] if folder.exists() else [],
            path=None if options.image else launch.require_program(PROGRAMS, _program(options), site.base),
        )
        return start_of(server, site)

    def ready(self, endpoint: Endpoint, options: VllmOptions) -> str | None:
        lacking_now = failure_at(endpoint, "/health")
        if lacking_now is not None:
            return lacking_now
        listed = [str(model.get("id")) for model in _models(endpoint)]
        wanted = options.model_name or options.model
        # A relative folder is served under its absolute name.
        return None if any(name == wanted or name.endswith(wanted) for name in listed) else f"{wanted} is not listed"

    def facts(self, endpoint: Endpoint, options: VllmOptions) -> Mapping[str, str]:  # noqa: ARG002 - the port's signature
        found = pick_values(find_json(endpoint, "/version"), "version")
        for model in _models(endpoint)[:1]:
            found |= {
                f"model_{name}": value for name, value in pick_values(model, "id", "root", "max_model_len").items()
            }
        return found


def _program(options: VllmOptions) -> str | None:
    """Return its script, which lies beside the interpreter that it is installed for."""
    if options.program is None and options.python is not None:
        return str(Path(options.python).with_name("vllm"))
    return options.program


def _models(endpoint: Endpoint) -> list[Mapping[str, object]]:
    document = find_json(endpoint, "/v1/models")
    listed = document.get("data") if isinstance(document, dict) else None
    return [model for model in listed if isinstance(model, dict)] if isinstance(listed, list) else []
