"""What a model's format says: which files belong to it, and whether an engine loads it."""

from __future__ import annotations

from pathlib import Path

from prony.errors import InputError
from prony.runner.onnx_file import read_graph


def companion_names(path: Path) -> tuple[str, ...]:
    """Return relative names: the external data of an ONNX file, the weights of an OpenVINO description."""
    ending = path.suffix.lower()
    if ending == ".onnx":
        return read_graph(path).external_files
    if ending == ".xml":
        return (path.with_suffix(".bin").name,)
    return ()


def check_ending(name: str, formats: tuple[str, ...]) -> None:
    """Refuse a file that the chosen engine does not load, before anything is read or downloaded."""
    if formats and not name.lower().endswith(formats):
        raise InputError(
            f"the chosen engine does not load {name}: it loads {', '.join(formats)}",
            hint="choose another engine, or another format of the model",
            code="format_unavailable",
        )
