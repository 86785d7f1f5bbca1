"""Fetch the model that a job names, and collect its facts."""

from __future__ import annotations

from pathlib import Path

from prony.model.result import ModelFacts
from prony.ports import plugins
from prony.ports.models import FetchOptions, ModelFiles, ModelSource, Progress, scheme_of
from prony.runner.checksum import checksum
from prony.runner.onnx_file import read_graph


def source_of(reference: str) -> ModelSource:
    """Return the source that understands a reference; a plain path is a file."""
    source: ModelSource = plugins.load_plugin(plugins.MODELS, scheme_of(reference))()
    return source


def fetch(model: str, options: FetchOptions, progress: Progress) -> tuple[ModelFiles, ModelFacts]:
    """Bring the model to this disk, if the policy allows it, and say which bytes it is."""
    options.policy.check_scheme(model)
    files = source_of(model).fetch(model, options, progress)
    return files, _facts(files.source or model, files)


def _facts(source: str, files: ModelFiles) -> ModelFacts:
    ending = files.path.suffix.lower()
    graph = read_graph(files.path) if ending == ".onnx" else None
    return ModelFacts(
        source=source,
        path=str(files.path),
        format=ending.removeprefix("."),
        sha256=checksum(files.files).removeprefix("sha256:"),
        size_bytes=sum(_size(path) for path in files.files),
        files=tuple(path.name for path in files.files),
        parameters=graph.parameters if graph else None,
        opset=graph.opset if graph else None,
        weight_types=dict(graph.weight_types) if graph else {},
    )


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(item.stat().st_size for item in path.rglob("*") if item.is_file())
