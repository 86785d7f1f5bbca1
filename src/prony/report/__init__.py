"""Write documents about an experiment: HTML, Markdown, JSON, CSV and JUnit, and the table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from prony.errors import InputError
from prony.model.experiment_data import ExperimentData
from prony.model.gate import strictly

__all__ = ["FORMATS", "check_format", "format_of_path", "render"]

# What a person writes after --format, and the module whose `render` makes it; imported only when it is asked for.
FORMATS: dict[str, str] = {
    "html": "prony.report.html.experiment",
    "md": "prony.report.markdown.experiment",
    "json": "prony.report.exports.json",
    "csv": "prony.report.exports.csv",
    "junit": "prony.report.exports.junit",
    "github": "prony.report.markdown.github",
}
_BY_ENDING = {".json": "json", ".csv": "csv", ".md": "md", ".html": "html", ".xml": "junit"}
_ALSO_SAID = {"markdown": "md", "htm": "html", "xml": "junit"}


def check_format(written: str, *, besides: Sequence[str] = ()) -> str:
    """Return the name of a report format as it is known here; `besides` are those that whoever asks has too.

    Raises:
        InputError: There is no such format.
    """
    name = _ALSO_SAID.get(written.lower(), written.lower())
    if name in FORMATS:
        return name
    near = get_close_matches(name, [*FORMATS, *_ALSO_SAID, *besides], n=1)
    known = ", ".join((*FORMATS, *besides))
    hint = f"did you mean {_ALSO_SAID.get(near[0], near[0])}?" if near else f"there are {known}"
    raise InputError(f"unknown report format {written!r}", hint=hint, code="unknown_format")


def format_of_path(path: Path, *, besides: Sequence[str] = ()) -> str:
    """Return the format that the name of a file tells; `besides` are endings that whoever asks knows too.

    Raises:
        InputError: Its ending is none of a format.
    """
    ending = path.suffix.lower()
    if ending not in _BY_ENDING:
        raise InputError(
            f"{path}: unknown format; the file name has no known ending",
            hint=f"use one of {', '.join((*_BY_ENDING, *besides))}",
        )
    return _BY_ENDING[ending]


def render(data: ExperimentData, format: str, *, strict: bool = False) -> str | bytes:  # noqa: A002 - the word people write
    """Return the whole document; the same data always give the same one. `strict`: what cannot be told fails."""
    name = check_format(format)
    judged = data.model_copy(update={"gates": strictly(data.gates)}) if strict else data
    document: str | bytes = import_module(FORMATS[name]).render(judged)
    return document
