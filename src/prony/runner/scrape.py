"""Scrape a Prometheus page beside a load."""

from __future__ import annotations

import math
import re
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

_PERIOD_S = 1.0
_PATIENCE_S = 1.0
_MOST_BYTES = 4 * 2**20
_MOST_NAMES = 2000
# name{labels} value [timestamp]
_LINE = re.compile(r"^([A-Za-z_:][A-Za-z0-9_:]*(?:\{.*\})?)\s+(\S+)")


class Page:
    """Reads one page again and again; what it could not read is counted and never stops a load."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.failures = 0
        self.reason = ""
        self._next = 0.0

    def read(self) -> dict[str, float] | None:
        """Return every number of the page, or None where it is not time yet or the page does not come."""
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + _PERIOD_S
        try:
            return numbers(self._fetch())
        except (OSError, HTTPException, ValueError) as exc:
            self.failures += 1
            self.reason = str(exc) or type(exc).__name__
            return None

    def _fetch(self) -> str:
        place = urlsplit(self.url)
        kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
        line = kind(place.hostname or "", place.port, timeout=_PATIENCE_S)
        try:
            line.request("GET", place.path or "/metrics", headers={"Accept": "text/plain"})
            answer = line.getresponse()
            if answer.status != 200:
                raise ValueError(f"it answers {answer.status}")
            return answer.read(_MOST_BYTES).decode(errors="replace")
        finally:
            line.close()


def numbers(text: str) -> dict[str, float]:
    """Return the value of each series of Prometheus's text format; buckets of histograms are left out, for there are
    hundreds of them and their sums and counts tell the mean."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None or "_bucket{" in match[1] or len(found) >= _MOST_NAMES:
            continue
        try:
            value = float(match[2])
        except ValueError:
            continue
        if math.isfinite(value):
            found[match[1]] = value
    return found
