"""Serve the files of the web application and of the documentation, precompressed and cacheable.

`site/` beside this module is what `make ui` builds from `ui/`; what is under `/help` `make docs` builds from `docs/`.
Nothing in them is secret, so nobody is asked who they are; what the pages show they ask of the API, which does ask.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from prony.app import documentation
from prony.server.body import header

SITE = Path(__file__).parent / "site"
# No inline script or style, nothing from elsewhere; `data:` is for pictures that charts save.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# A report has styles of its own: it is shown in a frame without an origin, which reaches nothing and runs one script.
_FRAME_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_OWN_HEADERS = {
    "/frame.html": {"Content-Security-Policy": _FRAME_POLICY, "X-Frame-Options": "SAMEORIGIN"},
    # Who has no origin is a stranger to this one; there is nothing in it to hide.
    "/frame.js": {"Cross-Origin-Resource-Policy": "cross-origin"},
}
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
_TWINS = {"br": ".br", "gzip": ".gz"}
# What a file of the site may be called; nothing that leads out of it.
_FILE = re.compile(r"(?:/[A-Za-z0-9_-]+)*/[A-Za-z0-9_-][A-Za-z0-9_.-]*\.(?:html|js|css|svg|png|json|txt)")
# More than a site has: files of the one before fall out.
_MOST_FILES = 256
# Paths that are the server's own; everything else that a browser opens is a page of the application.
_RESERVED = ("/api", "/docs", "/metrics", "/openapi.json")
HELP = "/help"
_IMMUTABLE = "public, max-age=31536000, immutable"
_NOT_BUILT = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Prony</title></head>
<body>
<h1>Prony's server is running</h1>
<p>Its web pages are not built in this checkout. With Node.js 20.19 or newer, run <code>make ui</code> and reload.</p>
<p>The API is all here: <a href="/docs">what it offers</a>. A package that was installed by pip has the pages in it.</p>
</body>
</html>
"""
_NO_HELP = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Prony: help</title></head>
<body>
<h1>%s</h1>
<p>%s</p>
</body>
</html>
"""


@dataclass(frozen=True)
class Asset:
    """A file of the site; `twins` are its compressed forms by their encoding."""

    content: bytes
    media_type: str
    tag: str
    twins: dict[str, bytes]


def is_page(scope: Scope) -> bool:
    """Does this ask for the web application: one of its files, or an address that a browser opens?"""
    path: str = scope["path"]
    if scope["method"] not in ("GET", "HEAD") or _is_reserved(path):
        return False
    return path == "/" or _is_help(path) or _asset(path) is not None or b"text/html" in header(scope, b"accept")


def has_site() -> bool:
    """Are the pages built?"""
    return (SITE / "index.html").is_file()


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the file, or with the application's page: what its addresses mean, it knows itself."""
    await _answer(scope)(scope, receive, send)


def _answer(scope: Scope) -> Response:
    path, asset = scope["path"], _asset(scope["path"])
    if _is_help(path) and asset is None:
        return _help_answer(path)
    if asset is None:
        path, asset = "/index.html", _asset("/index.html")
    if asset is None:
        return Response(_NOT_BUILT, media_type="text/html", headers={"Content-Security-Policy": POLICY})
    headers = {
        "Content-Security-Policy": POLICY,
        "Cache-Control": _IMMUTABLE if path.startswith("/assets/") else "no-cache",
        "ETag": asset.tag,
        "Vary": "Accept-Encoding",
    } | _OWN_HEADERS.get(path, {})
    if header(scope, b"if-none-match").decode("latin-1") == asset.tag:
        return Response(status_code=304, headers=headers)
    encoding, content = _encode(asset, header(scope, b"accept-encoding"))
    if encoding:
        headers["Content-Encoding"] = encoding
    if scope["method"] == "HEAD":
        return Response(headers=headers | {"Content-Length": str(len(content))}, media_type=asset.media_type)
    return Response(content, media_type=asset.media_type, headers=headers)


def _help_answer(path: str) -> Response:
    """Answer where the documentation has no such file: its first page, or what to do."""
    headers = {"Content-Security-Policy": POLICY}
    if not documentation.is_built():
        text = _NO_HELP % ("The documentation is not in this installation", documentation.HOW_TO_BUILD)
        return Response(text, status_code=404, media_type="text/html", headers=headers)
    if path.rstrip("/") == HELP:
        return RedirectResponse(f"{HELP}/index.html", headers=headers)
    text = _NO_HELP % ("Page not found", f'All pages: <a href="{HELP}/index.html">the documentation</a>.')
    return Response(text, status_code=404, media_type="text/html", headers=headers)


def _is_help(path: str) -> bool:
    return path == HELP or path.startswith(f"{HELP}/")


def _is_reserved(path: str) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in _RESERVED)


def _encode(asset: Asset, accepted: bytes) -> tuple[str, bytes]:
    names = {part.split(b";")[0].strip().decode("latin-1") for part in accepted.split(b",") if b"q=0" not in part}
    for name, content in asset.twins.items():
        if name in names:
            return name, content
    return "", asset.content


def _asset(path: str) -> Asset | None:
    """Return a file of the pages as it lies there now: they may be built anew while the server runs."""
    if not _FILE.fullmatch(path):
        return None
    place = documentation.FOLDER / path[len(HELP) + 1 :] if _is_help(path) else SITE / path.removeprefix("/")
    stamps = tuple(_stamp(place.with_name(place.name + ending)) for ending in ("", *_TWINS.values()))
    try:
        return None if stamps[0] is None else _read(place, stamps)
    except FileNotFoundError:  # it went between the two looks
        return None


def _stamp(place: Path) -> int | None:
    try:
        return place.stat().st_mtime_ns
    except OSError:
        return None


@lru_cache(maxsize=_MOST_FILES)
def _read(place: Path, stamps: tuple[int | None, ...]) -> Asset:
    content = place.read_bytes()
    twins = zip(_TWINS.items(), stamps[1:], strict=True)
    return Asset(
        content=content,
        media_type=_TYPES[place.suffix],
        tag=f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"',
        twins={
            name: place.with_name(place.name + end).read_bytes() for (name, end), there in twins if there is not None
        },
    )
