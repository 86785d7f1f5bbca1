"""Print to the terminal: JSON for programs, aligned columns for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from prony.model.shown import for_terminal

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

N = TypeVar("N", bound="BaseModel")
# JSON leaves these as they are, and terminals obey some of them.
CONTROLS = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}


def print_json(value: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(json.dumps(value, indent=1, default=str, ensure_ascii=False).translate(CONTROLS) + "\n")


def print_text(text: str) -> None:
    """Print text; what is in it of models, scripts and other people acts on no terminal."""
    _write(for_terminal(text))


def print_note(text: str) -> None:
    """Say something that is not the command's answer, so that the answer can be piped."""
    sys.stderr.write(for_terminal(text) + "\n")


def _write(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def print_answer(value: BaseModel | dict[str, str], text: str, *, as_json: bool) -> int:
    """Print what came of it, for programs or in one line for people; return the exit code of what went well."""
    if as_json:
        print_json(value if isinstance(value, dict) else value.model_dump(mode="json"))
    else:
        print_text(text)
    return 0


def print_listed(
    found: Sequence[N], heads: Sequence[str], cells: Callable[[N], Sequence[str]], *, none: str, as_json: bool
) -> int:
    """Print a list, for programs or in columns for people; `none` is said of an empty one."""
    if as_json:
        print_json([one.model_dump(mode="json") for one in found])
    elif found:
        print_columns(heads, [cells(one) for one in found])
    else:
        print_note(none)
    return 0


def terminal() -> Console:
    """Return standard output as rich writes to it; a reader who has gone is told like any other broken pipe."""
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would end the process with the exit code of a failed run

    return Terminal()


def print_columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their heads without importing anything: this is on the path of commands that must start fast."""
    widths = [max(len(str(row[i])) for row in (heads, *rows)) for i in range(len(heads))]
    bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    _write(bold + for_terminal(_line(heads, widths)) + plain)
    for row in rows:
        print_text(_line(row, widths))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()
