"""The table of docs/api.md: every operation, from the OpenAPI document of a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prony.server.auth import ROLES
from tools.openapi import describe_api
from tools.reference.markdown import format_table, format_text, replace_table

_HEAD = ("operation", "request", "role", "what it does")
_ROOT = "/api/v1"


def write_operation_table(page: str) -> str:
    """Return the page of the API with its table as a server describes itself."""
    return replace_table(page, _HEAD, format_table(_HEAD, _rows(describe_api())))


def _rows(described: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the operations in the order of the routes; those of one tag stand together."""
    operations = [
        (path, method, one) for path, methods in described["paths"].items() for method, one in methods.items()
    ]
    tags = list(dict.fromkeys(one["tags"][0] for _, _, one in operations))
    for path, method, one in sorted(operations, key=lambda found: tags.index(found[2]["tags"][0])):
        role = ROLES[one["operationId"]]
        about = one["description"].removesuffix(f"Role: {role or 'none'}.").strip()
        yield (
            f"`{one['operationId']}`", _format_request(method, path, one), role or "none",
            format_text(f"{one['summary']}. {about}"),
        )  # fmt: skip


def _format_request(method: str, path: str, operation: dict[str, Any]) -> str:
    query = "&".join(one["name"] for one in operation.get("parameters", ()) if one["in"] == "query")
    short = path.removeprefix(_ROOT)
    outside = "" if path.startswith(_ROOT) else f", outside of `{_ROOT}`"
    return f"`{method.upper()} {short}{'?' + query if query else ''}`{outside}"
