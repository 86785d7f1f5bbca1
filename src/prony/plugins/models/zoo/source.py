"""Model source for `zoo:NAME`: build the model in a format that the engine loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import ClassVar

from prony.errors import CapacityError
from prony.plugins.models.lock import made_once
from prony.plugins.models.zoo import convert as converter
from prony.plugins.models.zoo.cards import ZOO, ModelCard, card_of
from prony.plugins.models.zoo.llm_cards import LLM_ZOO
from prony.ports.models import FetchOptions, ModelFiles, Progress
from prony.runner.checksum import verify

_CONVERSION_TIMEOUT_S = 900.0


class ZooSource:
    """Real architectures with seeded weights: their latency is real, and nothing is downloaded."""

    scheme: ClassVar[str] = "zoo"

    def fetch(self, reference: str, options: FetchOptions, progress: Progress) -> ModelFiles:
        name = reference.removeprefix("zoo:")
        if name in LLM_ZOO:
            from prony.plugins.models.zoo.llm import fetch_llm

            found = fetch_llm(LLM_ZOO[name], options)
            verify(found.files, options.checksum, source=reference)
            return found
        card = card_of(name)
        ending = _chosen_format(card, options.formats)
        progress(0, card.size_bytes)
        path = self._onnx(card, options)
        if ending != ".onnx":
            path = self._convert(card, path, ending, options)
        verify((path,), options.checksum, source=f"zoo:{card.name}")
        size = path.stat().st_size
        progress(size, size)
        return ModelFiles(path=path, files=(path,))

    def look_up(self, reference: str, options: FetchOptions) -> None:
        name = reference.removeprefix("zoo:")
        if name in LLM_ZOO:
            from prony.plugins.models.zoo.llm import choose_llm_format

            choose_llm_format(LLM_ZOO[name], options.formats)
        else:
            _chosen_format(card_of(name), options.formats)

    def _onnx(self, card: ModelCard, options: FetchOptions) -> Path:
        def write(part: Path) -> None:
            from prony.plugins.models.zoo.architectures import write_onnx

            write_onnx(card, part)

        return made_once(_place(card, ".onnx", options), write)

    def _convert(self, card: ModelCard, source: Path, ending: str, options: FetchOptions) -> Path:
        def write(part: Path) -> None:
            _run_converter(source, part, python=options.python or sys.executable)

        return made_once(_place(card, ending, options), write)


def _place(card: ModelCard, ending: str, options: FetchOptions) -> Path:
    return options.cache / "zoo" / f"{card.name}-{card.version}{ending}"


def _chosen_format(card: ModelCard, wanted: tuple[str, ...]) -> str:
    """Return .onnx, which every other format is made from, where the engine loads it; else the most wanted one."""
    if not wanted or ".onnx" in wanted:
        return ".onnx"
    for ending in wanted:
        if ending in card.formats:
            return ending
    others = [f"{ending}: {', '.join(names)}" for ending in wanted if (names := _built_as(ending))]
    raise CapacityError(
        f"zoo:{card.name} cannot be built as {' or '.join(wanted)}",
        hint=f"zoo models that can: {'; '.join(others)}" if others else "choose an engine that loads .onnx files",
        code="format_unavailable",
    )


def _built_as(ending: str) -> list[str]:
    return [card.name for card in ZOO.values() if ending in card.formats]


def _run_converter(source: Path, target: Path, *, python: str) -> None:
    """Run the converter under the engine's interpreter, which has the vendor's package where this one may not."""
    command = [python, converter.__file__, str(source), str(target)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_CONVERSION_TIMEOUT_S, check=False)
    except FileNotFoundError as exc:
        raise CapacityError(f"interpreter not found: {python}", hint="see prony engines") from exc
    except subprocess.TimeoutExpired as exc:
        raise CapacityError(
            f"converting {source.name} to {target.suffix} took longer than {_CONVERSION_TIMEOUT_S:.0f} s",
            hint="try again when the machine is idle",
        ) from exc
    if done.returncode != 0:
        last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise CapacityError(
            f"{python} could not convert {source.name} to {target.suffix}: {last}",
            hint=f"run it by hand to see the whole error: {' '.join(command)}",
            code="conversion_failed",
        )
