"""A model of the engine `transformers` behind OpenAI's API, by Prony's own small server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

import prony
from prony.errors import NotFoundError, about_key
from prony.plugins.services.asking import failure_at, find_json, pick_values
from prony.plugins.services.launch import (
    LaunchedServer,
    ServiceOptions,
    find_engine_package,
    lacking,
    listen_address,
    require_program,
    start_of,
)
from prony.ports import plugins
from prony.ports.driver import Endpoint
from prony.ports.service import Installation, ServiceSite, Start
from prony.runner.gguf_header import read_gguf_facts
from prony.runner.services.site import LOOPBACK

PROGRAMS = ("python3",)
HOW = "prony engines add transformers, or settings.program: ENVIRONMENT/bin/python"
_ENTRY = Path(prony.__file__).parent / "runner" / "child" / "__main__.py"
_SERVER = "prony.kinds.llm.child.server:main"


class TransformersOptions(ServiceOptions):
    model: str = Field(
        min_length=1, description="a folder in Hugging Face's layout, or a GGUF file", json_schema_extra={"path": True}
    )
    model_name: str | None = Field(
        default=None, min_length=1, description="the model's name in requests; default: its name"
    )
    unit: str = Field(default="cpu", min_length=1, description="compute unit: cpu, cuda, cuda-1, ...")
    precision: Literal["default", "fp32", "fp16", "bf16"] = Field(
        default="default", description="precision to compute in; default: that of the weights"
    )
    threads: int | None = Field(default=None, ge=1, description="threads; default: all CPUs that this process may use")


def _find_model(options: TransformersOptions, base: Path) -> Path:
    model = (base / Path(options.model).expanduser()).absolute()
    if not model.exists():
        hint = "settings.model is a folder or a GGUF file"
        raise NotFoundError(f"model not found: {model}", hint=hint, code="unknown_model")
    return model


class Transformers:
    """A small server for one model of Hugging Face's library, which answers one request after the other."""

    name: ClassVar[str] = "transformers"
    driver: ClassVar[str] = "openai-chat"
    Options: ClassVar[type[TransformersOptions]] = TransformersOptions

    def available(self, options: TransformersOptions) -> str | None:
        if options.image is not None or options.program is not None:
            return lacking(PROGRAMS, options, HOW)
        is_there = find_engine_package("transformers", "transformers") is not None
        return None if is_there else f"the engine transformers is not installed; to get it: {HOW}"

    def installation(self) -> Installation | None:
        found = find_engine_package("transformers", "transformers")
        return None if found is None else Installation(found.python, "package", found.version)

    def check_files(self, options: TransformersOptions, base: Path) -> None:
        with about_key("workload.settings.model"):
            model = _find_model(options, base)
            if model.suffix.lower() == ".gguf":
                read_gguf_facts(model)

    def start(self, site: ServiceSite) -> Start:
        options: TransformersOptions = site.options
        model = _find_model(options, site.base)
        words = [
            str(_ENTRY), "--call", _SERVER, plugins.target(plugins.ENGINES, "transformers"), "--model", str(model),
            "--name", options.model_name or model.stem, "--host", listen_address(site), "--port", str(site.port),
            "--unit", options.unit, "--precision", options.precision, "--threads",
            str(options.threads or len(os.sched_getaffinity(0))),
        ]  # fmt: skip
        server = LaunchedServer(
            PROGRAMS, words, Endpoint(host=LOOPBACK, port=site.port), {"HF_HUB_OFFLINE": "1"},
            shared=[model, Path(prony.__file__).parent], path=self._python(options, site.base),
        )  # fmt: skip
        return start_of(server, site)

    def _python(self, options: TransformersOptions, base: Path) -> Path | None:
        if options.image is not None:
            return None
        found = find_engine_package("transformers", "transformers") if options.program is None else None
        return found.python if found is not None else require_program(PROGRAMS, options.program, base)

    def ready(self, endpoint: Endpoint, options: TransformersOptions) -> str | None:  # noqa: ARG002 - the port's signature
        return failure_at(endpoint, "/health")

    def facts(self, endpoint: Endpoint, options: TransformersOptions) -> Mapping[str, str]:  # noqa: ARG002 - the port's signature
        document = find_json(endpoint, "/v1/models")
        listed = document.get("data") if isinstance(document, dict) else None
        model = listed[0] if isinstance(listed, list) and listed else {}
        found = pick_values(model, "id", "architecture", "max_model_len")
        return {f"model_{name}": value for name, value in found.items()}
