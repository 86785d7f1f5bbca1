"""Every error that Prony raises on purpose, and whose move each one is.

    PronyError
    ├── InputError           the caller's move: the recipe, an option or a file is wrong
    │   ├── RecipeError      the recipe is wrong: every problem with its place and the nearest right key
    │   ├── NotFoundError    the thing that was named does not exist
    │   ├── ConflictError    the thing is not in a state that allows this
    │   └── AccessError      who asks is not known, or may not do this
    ├── CapacityError        wait, or add what is missing: an engine, a unit, a device
    ├── SutError             the system under test failed: that is the result, record it
    ├── MeasurementError     we cannot vouch for the number: void it
    ├── StoreError           what we keep cannot be read or written
    └── TransportError       the other side could not be reached or spoke nonsense

Each has a stable `code`, of those in `prony.error_codes`, a message (what and where) and a hint (what to do).
`EXIT_CODES` maps them to the exit code of a command: 0 good, 1 a gate or the run failed, 2 your input is wrong, 3 Prony
or its surroundings failed.
`HTTP_STATUS` maps them, and some codes of their own, to the status of a server's answer.

This module is imported by the engine's child and must need nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from prony.error_codes import ERROR_CODES


class PronyError(Exception):
    """The root: a code for programs, a message and a hint for people; a narrower code brings a hint of its own."""

    code = "error"
    key = ""  # of the recipe, such as `workload.draft`, where it is known which one the error is about

    def __init__(self, message: str, *, hint: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code
            self.hint = hint or (ERROR_CODES[code].advice if code in ERROR_CODES else "")

    def to_dict(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "hint": self.hint}


@contextmanager
def about_key(key: str) -> Iterator[None]:
    """Say of the errors in the block which key of the recipe they are about."""
    try:
        yield
    except PronyError as exc:
        exc.key = key
        raise


class InputError(PronyError):
    code = "input"


class RecipeError(InputError):
    """`problems` is for programs: one dict for each, with path, source, line, column, message and hint."""

    code = "recipe"

    def __init__(self, message: str, *, hint: str = "", problems: Sequence[dict[str, object]] = ()) -> None:
        super().__init__(message, hint=hint)
        self.problems = list(problems)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"problems": self.problems}


class NotFoundError(InputError):
    code = "not_found"


class ConflictError(InputError):
    code = "conflict"


class AccessError(InputError):
    """`unauthorized`: nobody knows who asks; `forbidden`: known, and may not."""

    code = "forbidden"


class CapacityError(PronyError):
    code = "capacity"


class SutError(PronyError):
    code = "sut"


class MeasurementError(PronyError):
    code = "measurement"


class StoreError(PronyError):
    code = "store"


class TransportError(PronyError):
    code = "transport"


EXIT_CODES: dict[type[PronyError], int] = {
    InputError: 2,
    CapacityError: 3,
    SutError: 1,
    MeasurementError: 1,
    StoreError: 3,
    TransportError: 3,
}


HTTP_STATUS: dict[type[PronyError] | str, int] = {
    InputError: 422,
    NotFoundError: 404,
    ConflictError: 409,
    AccessError: 403,
    CapacityError: 503,
    SutError: 422,
    MeasurementError: 422,
    StoreError: 503,
    TransportError: 502,
    "unauthorized": 401,
    "too_large": 413,
    "too_many": 429,
    "method_not_allowed": 405,
    "unsupported_media_type": 415,
    "damaged": 422,
}


def http_status(error: PronyError) -> int:
    """Return the status of the error's code, or else of the nearest ancestor that the table names."""
    if error.code in HTTP_STATUS:
        return HTTP_STATUS[error.code]
    return next((HTTP_STATUS[kind] for kind in type(error).__mro__ if kind in HTTP_STATUS), 500)


def exit_code(error: PronyError) -> int:
    """Return the exit code of the nearest ancestor that the table names."""
    for kind in type(error).__mro__:
        if kind in EXIT_CODES:
            return EXIT_CODES[kind]
    return 3


def whose_move(error: PronyError) -> str:
    """Return `input`, `capacity`, `sut` or `prony`: who has to act before it can go better."""
    for kind, whose in ((InputError, "input"), (CapacityError, "capacity"), (SutError, "sut")):
        if isinstance(error, kind):
            return whose
    return "prony"
