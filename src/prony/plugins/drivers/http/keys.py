"""Build an authentication header from the key in an environment variable."""

from __future__ import annotations

import os

from prony.errors import InputError


def key_header(name: str, variable: str | None) -> dict[str, str]:
    """Return the header `name` with the key that the variable holds; nothing where none is named."""
    if variable is None:
        return {}
    key = os.environ.get(variable)
    if not key:
        raise InputError(f"the environment variable {variable} is not set", hint=f"export {variable}=...")
    return {name: key}
