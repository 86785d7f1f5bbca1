"""Ollama: `ollama serve` with models that are here already; ready when the model is loaded."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from prony.errors import NotFoundError, SutError
from prony.plugins.services.asking import SilentError, ask, failure_at, find_json, pick_values
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

PROGRAMS = ("ollama",)
HOW = "curl -fsSL https://ollama.com/install.sh | sh, or settings.image: docker.io/ollama/ollama"
_LOAD_S = 3600.0


class OllamaOptions(ServiceOptions):
    model: str = Field(min_length=1, description="a model that is already pulled", examples=["llama3.2:1b"])
    models: str | None = Field(
        default=None,
        min_length=1,
        description="the folder of models; default: OLLAMA_MODELS, or ~/.ollama/models",
        json_schema_extra={"path": True},
    )


class Ollama:
    """Ollama, with a model that is already pulled."""

    name: ClassVar[str] = "ollama"
    driver: ClassVar[str] = "ollama"
    Options: ClassVar[type[OllamaOptions]] = OllamaOptions

    def __init__(self) -> None:
        self._loading: threading.Thread | None = None
        self._refused = ""

    def available(self, options: OllamaOptions) -> str | None:
        return lacking(PROGRAMS, options, HOW)

    def installation(self) -> Installation | None:
        return installation_of(PROGRAMS)

    def start(self, site: ServiceSite) -> Start:
        options: OllamaOptions = site.options
        models = _models_folder(options, site.base)
        self._loading, self._refused = None, ""
        environment = {
            "OLLAMA_HOST": f"{listen_address(site)}:{site.port}",
            "OLLAMA_MODELS": str(models if models.is_dir() else site.folder / "models"),
            "OLLAMA_NOPRUNE": "1",  # the models are the user's, and stay as they are
            "HOME": str(site.folder),  # it makes itself a key there
        }
        server = LaunchedServer(
            PROGRAMS,
            ["serve"],
            Endpoint(host=LOOPBACK, port=site.port),
            environment,
            grace_s=10.0,
            shared=[models] if models.is_dir() else [],
        )
        return start_of(server, site)

    def ready(self, endpoint: Endpoint, options: OllamaOptions) -> str | None:
        if (reason := failure_at(endpoint, "/api/version")) is not None:
            return reason
        if _find_in_list(endpoint, "/api/ps", options.model) is not None:
            return None
        if self._refused:
            raise SutError(
                f"ollama cannot load {options.model}: {self._refused}",
                code="service_failed",
                hint=f"try it outside of Prony: ollama run {options.model}",
            )
        if self._loading is None:
            if _find_in_list(endpoint, "/api/tags", options.model) is None:
                hint = f"ollama pull {options.model}"
                raise NotFoundError(f"model not found in ollama: {options.model}", hint=hint, code="unknown_model")
            # Ollama gives up loading when whoever asked for it hangs up, so that somebody must wait.
            self._loading = threading.Thread(target=self._load, args=(endpoint, options.model), daemon=True)
            self._loading.start()
        return f"{options.model} is not loaded yet"

    def _load(self, endpoint: Endpoint, model: str) -> None:
        body = json.dumps({"model": model, "keep_alive": -1, "stream": False}).encode()
        try:
            answer = ask(endpoint, "/api/generate", method="POST", body=body, timeout_s=_LOAD_S)
        except SilentError as exc:
            self._refused = str(exc)
            return
        if answer.status != 200:
            self._refused = answer.body[:500].decode(errors="replace") or str(answer.status)

    def facts(self, endpoint: Endpoint, options: OllamaOptions) -> Mapping[str, str]:
        found = pick_values(find_json(endpoint, "/api/version"), "version")
        loaded = _find_in_list(endpoint, "/api/ps", options.model)
        names = {
            "name": "model",
            "digest": "model_digest",
            "details.quantization_level": "quantization",
            "details.parameter_size": "parameters",
            "size_vram": "model_vram_bytes",
            "context_length": "context",
        }
        return found | {names[name]: value for name, value in pick_values(loaded, *names).items()}


def _models_folder(options: OllamaOptions, base: Path) -> Path:
    if options.models is not None:
        return (base / Path(options.models).expanduser()).absolute()
    return Path(os.environ.get("OLLAMA_MODELS") or Path.home() / ".ollama" / "models").absolute()


def _find_in_list(endpoint: Endpoint, path: str, model: str) -> Any:
    """Return what a list says of the model, None where it is not in it; a name without a tag is its latest."""
    document = find_json(endpoint, path)
    entries = document.get("models") if isinstance(document, dict) else None
    return next((entry for entry in entries or [] if _whole(model) in _names(entry)), None)


def _whole(name: str) -> str:
    return name if ":" in name else f"{name}:latest"


def _names(entry: Mapping[str, Any]) -> set[str]:
    return {_whole(str(entry[key])) for key in ("name", "model") if entry.get(key)}
