"""The lines of docs/errors.md: every error code, in the order that people chose."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from prony import errors
from prony.app.execution import RunnerLostError
from prony.app.fleet.closing import ClosingError
from prony.error_codes import ERROR_CODES, ErrorCode
from prony.errors import PronyError, exit_code, http_status
from prony.runner import engines, exit_decoder
from prony.server.problems import MethodError, RequestError
from tools.reference.markdown import format_text
from tools.sources import parse_source

_SOURCE = Path(errors.__file__).parent
_ROW = re.compile(r"^\| `(\w+)` \|[^\n]*$", re.MULTILINE)
_KINDS = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, PronyError)}
# Raised under a name that is put together at run time.
_COMPOSED = ("unknown_engine", "unknown_executor", "unknown_model", "unknown_probe")
# Of classes outside of `prony.errors`: the kind that a caller sees.
_OF_CLASSES = {
    ClosingError.code: "CapacityError", RunnerLostError.code: "PronyError", "internal": "PronyError",
    RequestError.code: "InputError", MethodError.code: "InputError",
}  # fmt: skip


# Its own folder of the package alone may name another program.
MEANINGS = ERROR_CODES | {
    "sark_unprotected": ErrorCode(
        "SARK's API has no tokens, and other machines can reach it",
        "use --sark-bind 127.0.0.1, or --sark-open-to-anyone",
    )
}


class Use(NamedTuple):
    """A code as one place in the source gives it; a status of 0 is that of the kind."""

    code: str
    kind: str
    status: int = 0


def write_error_rows(page: str) -> str:
    """Return the page of errors with the line of each code as the code has it."""
    return _ROW.sub(lambda found: _format_row(found[1]), page)


@cache
def list_uses() -> dict[str, set[Use]]:
    """Return every code with where it is used: of the kinds themselves, of errors and of failed repetitions."""
    found: dict[str, set[Use]] = {}
    for use in _uses():
        found.setdefault(use.code, set()).add(use)
    return found


def _format_row(code: str) -> str:
    if code not in MEANINGS:
        raise ValueError(f"docs/errors.md: no error has the code {code}")
    uses = sorted(list_uses()[code])
    about = MEANINGS[code]
    cells = (
        f"`{code}`", _join(f"`{use.kind}`" for use in uses), _join(_status(use) for use in uses),
        _join(_exit(use) for use in uses), format_text(about.meaning), format_text(about.advice),
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _join(texts: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(text for text in texts if text))


def _status(use: Use) -> str:
    """Return the status of a server's answer; a failed repetition is no answer."""
    return "" if use.kind == "Failure" else str(use.status or http_status(_make(use)))


def _exit(use: Use) -> str:
    return "1" if use.kind == "Failure" else str(exit_code(_make(use)))


def _make(use: Use) -> PronyError:
    error = _KINDS[use.kind]("")
    error.code = use.code
    return error


def _uses() -> Iterator[Use]:
    yield from (Use(kind.code, name) for name, kind in _KINDS.items())
    yield from (Use(code, "NotFoundError") for code in _COMPOSED)
    yield from (Use(code, "CapacityError") for code in engines._STATES)
    yield from (Use(code, "Failure") for code, _, _ in exit_decoder._MEANINGS.values())
    yield from (Use(code, kind) for code, kind in _OF_CLASSES.items())
    for path in sorted(_SOURCE.rglob("*.py")):
        if "code=" in (text := path.read_text()):
            yield from _read_uses(parse_source(text))


def _read_uses(module: ast.Module) -> Iterator[Use]:
    """Yield the codes that calls of a module give by name, but for those that a kind has by itself."""
    own = {kind.code for kind in _KINDS.values()}
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            code, status = _constant(given.get("code")), _constant(given.get("status"))
            if isinstance(code, str) and code not in own:
                yield Use(code, _kind(node.func), status if isinstance(status, int) else 0)


def _constant(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _kind(called: ast.expr) -> str:
    # The child has no nouns: what it sends is read as a Failure on the other side.
    is_sent = isinstance(called, ast.Attribute) and called.attr == "send"
    name = "Failure" if is_sent else ast.unparse(called)
    return "InputError" if name == RequestError.__name__ else name
