"""Draw the mock server's faults from a seed, one decision per request."""

from __future__ import annotations

import random
import re

from prony.load.mock.script import LAST_CHUNK, chunk
from prony.load.mock.start import Options

# In the order in which one number from 0 to 1 is shared out among them.
KINDS = ("errors", "reset", "truncate", "garbage")
_MULTIBYTE = re.compile(rb"[\xc2-\xf4][\x80-\xbf]")


class Faults:
    """Draws once for each request, and once for each connection from a seed of its own."""

    def __init__(self, options: Options) -> None:
        self._edges: list[tuple[float, str]] = []
        edge = 0.0
        for kind in KINDS:
            edge += getattr(options, kind)
            if getattr(options, kind):
                self._edges.append((edge, kind))
        self.any = bool(self._edges)
        self._refuse = options.refuse
        self._requests = random.Random(options.seed)
        self._lines = random.Random(f"lines {options.seed}")

    def draw(self) -> str:
        """Return the fault of the next request; nothing where it has none."""
        if not self.any:
            return ""
        drawn = self._requests.random()
        return next((kind for edge, kind in self._edges if drawn < edge), "")

    def refuses(self) -> bool:
        """Say whether the next connection is closed at once."""
        return self._refuse > 0 and self._lines.random() < self._refuse


def halves(coded: bytes) -> list[bytes]:
    """Return chunked content as writes in which every chunk has become two, cut within a character if there is one."""
    found: list[bytes] = []
    at = 0
    while at < len(coded):
        begin = coded.index(b"\r\n", at) + 2
        size = int(coded[at : begin - 2], 16)
        content = coded[begin : begin + size]
        cut = _cut(content)
        found += [chunk(part) for part in (content[:cut], content[cut:]) if part] or [LAST_CHUNK]
        at = begin + size + 2
    return found


def _cut(content: bytes) -> int:
    match = _MULTIBYTE.search(content)
    return match.start() + 1 if match else len(content) // 2
