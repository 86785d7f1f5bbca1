"""llama.cpp's `llama-server`, or the same by the library of the engine `llamacpp`; ready when its model is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from prony.errors import NotFoundError, about_key
from prony.plugins.services import llamacpp_server
from prony.plugins.services.asking import SilentError, ask, find_json, pick_values
from prony.plugins.services.launch import (
    EnginePackage,
    LaunchedServer,
    ServiceOptions,
    find_engine_package,
    find_program,
    installation_of,
    lacking,
    listen_address,
    start_of,
)
from prony.ports.driver import Endpoint
from prony.ports.service import Installation, ServiceSite, Start
from prony.runner.gguf_header import read_gguf_facts
from prony.runner.services.site import LOOPBACK

PROGRAMS = ("llama-server",)
HOW = (
    "prony engines add llamacpp, or brew install llama.cpp, or a release from "
    "https://github.com/ggml-org/llama.cpp/releases"
)


def find_library() -> EnginePackage | None:
    """Return the interpreter of the engine `llamacpp`, where that has its package."""
    return find_engine_package("llamacpp", "xllamacpp")


class LlamacppOptions(ServiceOptions):
    model: str = Field(min_length=1, description="a GGUF file", json_schema_extra={"path": True})
    model_name: str | None = Field(
        default=None, min_length=1, description="the model's name in requests; default: its file"
    )
    context: int | None = Field(
        default=None, ge=1, description="context length in tokens, over all slots; default: its own"
    )
    threads: int | None = Field(default=None, ge=1, description="threads; default: its own")
    parallel: int | None = Field(default=None, ge=1, description="slots: requests at the same time; default: its own")
    gpu_layers: int | None = Field(default=None, ge=0, description="layers on the GPU; default: its own")


def _find_model(options: LlamacppOptions, base: Path) -> Path:
    model = (base / Path(options.model).expanduser()).absolute()
    if not model.is_file():
        raise NotFoundError(f"model not found: {model}", hint="settings.model is a GGUF file", code="unknown_model")
    return model


class Llamacpp:
    """llama.cpp's `llama-server`, with a GGUF file."""

    name: ClassVar[str] = "llamacpp"
    driver: ClassVar[str] = "openai-chat"
    Options: ClassVar[type[LlamacppOptions]] = LlamacppOptions

    def available(self, options: LlamacppOptions) -> str | None:
        lacks = lacking(PROGRAMS, options, HOW)
        is_open = options.image is None and options.program is None
        return None if is_open and find_library() is not None else lacks

    def installation(self) -> Installation | None:
        found = installation_of(PROGRAMS, pattern=r"(?<=version: )[0-9]+")
        library = find_library() if found is None else None
        return Installation(library.python, "package", library.version) if library is not None else found

    def check_files(self, options: LlamacppOptions, base: Path) -> None:
        with about_key("workload.settings.model"):
            read_gguf_facts(_find_model(options, base))

    def start(self, site: ServiceSite) -> Start:
        options: LlamacppOptions = site.options
        model = _find_model(options, site.base)
        chosen = {
            "--alias": options.model_name,
            "--ctx-size": options.context,
            "--threads": options.threads,
            "--parallel": options.parallel,
            "--n-gpu-layers": options.gpu_layers,
        }
        is_open = options.image is None and options.program is None and find_program(PROGRAMS) is None
        library = find_library() if is_open else None
        server = LaunchedServer(
            PROGRAMS,
            [
                *(() if library is None else (llamacpp_server.__file__,)),
                *("--model", str(model), "--host", listen_address(site), "--port", str(site.port), "--metrics"),
                *(word for name, value in chosen.items() if value is not None for word in (name, str(value))),
            ],
            Endpoint(host=LOOPBACK, port=site.port),
            metrics_path="/metrics",
            shared=[model],
            path=None if library is None else library.python,
        )
        return start_of(server, site)

    def ready(self, endpoint: Endpoint, options: LlamacppOptions) -> str | None:  # noqa: ARG002 - the port's signature
        try:
            answer = ask(endpoint, "/health")
        except SilentError as exc:
            return str(exc)
        is_ok = answer.status == 200 and pick_values(answer.document(), "status").get("status") == "ok"
        return None if is_ok else f"/health answered {answer.status} {answer.body[:200].decode(errors='replace')}"

    def facts(self, endpoint: Endpoint, options: LlamacppOptions) -> Mapping[str, str]:  # noqa: ARG002 - the port's signature
        props = find_json(endpoint, "/props")
        names = {
            "build_info": "version",
            "total_slots": "parallel",
            "default_generation_settings.n_ctx": "context_of_slot",
            "model_path": "model_path",
            "model_alias": "model_name",
        }
        return {names[name]: value for name, value in pick_values(props, *names).items()}
