"""Find the operation for a method and a path in one lookup.

The general way tries one pattern after the other, and there are dozens. Here an id stands at one place of a path alone:
after the noun.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from starlette.types import Scope

from prony.server.operation import Operation
from prony.server.problems import MethodError, RequestError

_PARAMETER = re.compile(r"{(\w+)}")
# Where the id stands in `/api/v1/jobs/{job_id}/logs` and in `/docs/{name}`, between slashes.
_PLACES = (4, 2)


class Directory:
    """Every operation, by its method and its path without the id."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._found: dict[tuple[str, str], tuple[Operation, str]] = {}
        for operation in operations:
            names = _PARAMETER.findall(operation.path)
            for method in operation.methods or ():
                self._found[method, _PARAMETER.sub("{}", operation.path)] = (operation, names[0] if names else "")

    def find(self, scope: Scope) -> Operation:
        """Return who answers a request, and note in its scope which id it is about; refuse where nobody does."""
        method = scope["method"]
        for path, ident in _readings(scope["path"]):
            found = self._found.get((method, path))
            if found is not None:
                operation, name = found
                scope["route"], scope["path_params"] = operation, {name: ident} if name else {}
                return operation
        raise self._refusal(method, scope["path"])

    def _refusal(self, method: str, path: str) -> RequestError:
        readings = {reading for reading, _ in _readings(path)}
        allowed = [one for one, known in self._found if known in readings]
        if allowed:
            return MethodError(f"{method[:20]} is not allowed for {path[:200]}", allowed=allowed)
        hint = "/docs lists all operations; the API is under /api/v1"
        return RequestError(f"there is nothing at {path[:200]}", status=404, code="not_found", hint=hint)


def _readings(path: str) -> Iterator[tuple[str, str]]:
    """Yield a path as it is, and with a part taken for an id, each with that id."""
    if "{" in path:
        return
    yield path, ""
    parts = path.split("/")
    for place in _PLACES:
        if len(parts) > place and parts[place]:
            yield "/".join([*parts[:place], "{}", *parts[place + 1 :]]), parts[place]
